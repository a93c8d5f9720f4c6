{{- /* The name under which NPU pods are scheduled; it follows the kind of scheduler. */ -}}
{{- define "vnpu.schedulerName" -}}
{{- $names := dict "volcano" "volcano" "hami" "hami-scheduler" "kube" (include "vnpu.scheduler.name" .) -}}
{{- default (get $names .Values.scheduler.kind) .Values.scheduler.name -}}
{{- end -}}

{{- /*
Accounts that may write allocations, as a JSON list: our scheduler and device plugin, HAMi's scheduler, device plugins
for GPUs (their pods carry hami.io/vgpu-* as well) and for NPUs, Volcano's scheduler, and the user's. One list for the
API server's condition and for the webhook's own check.
*/ -}}
{{- define "vnpu.allocators" -}}
{{- if hasKey .Values.settings "allocators" -}}
{{- toJson .Values.settings.allocators -}}
{{- else -}}
{{- concat (list
      (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "vnpu.scheduler.name" .))
      (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "vnpu.node.name" .))
      "system:serviceaccount:kube-system:hami-scheduler"
      "system:serviceaccount:kube-system:hami-device-plugin"
      "system:serviceaccount:kube-system:hami-ascend"
      "system:serviceaccount:volcano-system:volcano-scheduler"
    ) .Values.allocators | uniq | toJson -}}
{{- end -}}
{{- end -}}

{{- /* The webhook's settings: what follows from the values, under what the user sets. */ -}}
{{- define "vnpu.settings" -}}
{{- $name := include "vnpu.schedulerName" . -}}
{{- $known := list "volcano" "hami-scheduler" $name | uniq -}}
{{- $follows := dict
      "schedulerName" $name
      "knownSchedulers" $known
      "devicePlugin" (ternary "vnpu" "hami" .Values.node.enabled)
      "allocators" (include "vnpu.allocators" . | fromJsonArray) -}}
{{- if eq .Values.scheduler.kind "volcano" -}}
{{- $_ := set $follows "volcanoSchedulers" (list "volcano" $name | uniq) -}}
{{- end -}}
{{- if .Values.runtimeClass.create -}}
{{- $_ := set $follows "runtimeClassName" .Values.runtimeClass.name -}}
{{- end -}}
{{- /* Not merge: it takes what is empty, such as schedulerName: "", for what is left out. */ -}}
{{- $settings := deepCopy .Values.settings -}}
{{- range $key, $value := $follows -}}
{{- if not (hasKey $settings $key) -}}
{{- $_ := set $settings $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- define "vnpu.settings.volume" -}}
- name: settings
  configMap: {name: {{ include "vnpu.fullname" . }}-settings}
- name: device-config
  configMap: {name: {{ include "vnpu.fullname" . }}-device-config}
{{- end -}}

{{- /* Whole folders: a file mounted by subPath would never change, and both are reloaded when they do. */ -}}
{{- define "vnpu.settings.mounts" -}}
- {name: settings, mountPath: /etc/vnpu/settings, readOnly: true}
- {name: device-config, mountPath: /etc/vnpu/device-config, readOnly: true}
{{- end -}}

{{- define "vnpu.settings.arguments" -}}
- --config=/etc/vnpu/settings/settings.yaml
- --device-config=/etc/vnpu/device-config/device-config.yaml
{{- end -}}
