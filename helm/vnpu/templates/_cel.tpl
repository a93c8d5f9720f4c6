{{- /*
By these expressions the API server decides whom it asks about: only objects with a sign of an NPU. They are written
for the CEL of Kubernetes 1.28: no optionals, no variables; a name is bound by [x].exists(t, ...). An expression that
fails to evaluate refuses the object, so nothing is read before it is known to be there, and to be of its kind: null
containers of a pod reach the mutating webhooks.
*/ -}}

{{- /* Whether the annotation key k is the mode's or an allocation's. Dots in brackets need no escape in YAML or CEL. */ -}}
{{- define "vnpu.cel.key" -}}
k.matches('^(huawei[.]com/(vnpu-mode$|Ascend)|hami[.]io/(Ascend.*-devices-|vgpu-|bind-)|predicate-time$)')
{{- end -}}

{{- /* Whether t, a pod or a pod template, asks for an NPU or carries such a key. */ -}}
{{- define "vnpu.cel.signs" -}}
(has(t.metadata) && has(t.metadata.annotations) && type(t.metadata.annotations) == map && t.metadata.annotations.exists(k,
  {{ include "vnpu.cel.key" . }})) ||
(has(t.spec) && type(t.spec) == map && ['containers', 'initContainers'].exists(f, f in t.spec && type(t.spec[f]) == list && t.spec[f].exists(c,
  has(c.resources) && type(c.resources) == map && ['limits', 'requests'].exists(r, r in c.resources && type(c.resources[r]) == map &&
    c.resources[r].exists(k, k.startsWith('huawei.com/Ascend'))))))
{{- end -}}

{{- /* Takes where the pod or its template stands, such as "object.spec.template". */ -}}
{{- define "vnpu.cel.npu" -}}
[{{ . }}].exists(t, {{ include "vnpu.cel.signs" . }})
{{- end -}}

{{- define "vnpu.cel.npu.tasks" -}}
has(object.spec) && has(object.spec.tasks) && type(object.spec.tasks) == list && object.spec.tasks.exists(x, has(x.template) && {{ include "vnpu.cel.npu" "x.template" }})
{{- end -}}

{{- /*
Scaling, labels and finalizers of a workload do not ask: only a changed template does. Takes the path below the object.
*/ -}}
{{- define "vnpu.cel.changed" -}}
oldObject == null || object.{{ . }} != oldObject.{{ . }}
{{- end -}}

{{- define "vnpu.cel.changed.tasks" -}}
oldObject == null || !(has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)
{{- end -}}

{{- /*
Schedulers and device plugins write allocations without asking, also while the webhook is away. Takes the root.
*/ -}}
{{- define "vnpu.cel.notAllocator" -}}
!(request.userInfo.username in {{ include "vnpu.allocators" . | fromJsonArray | toJson }})
{{- end -}}

{{- /*
Whether the mode or an allocation was added, changed or removed; a: annotations after and before. The cheap comparison
stands first, so that a pod with thousands of annotations stays within the cost limit.
*/ -}}
{{- define "vnpu.cel.allocationChanged" -}}
[[object, oldObject].map(o, has(o.metadata.annotations) ? o.metadata.annotations : {})].exists(a,
  a.exists(x, a.exists(y, x.exists(k, !(k in y && y[k] == x[k]) && {{ include "vnpu.cel.key" . }}))))
{{- end -}}
