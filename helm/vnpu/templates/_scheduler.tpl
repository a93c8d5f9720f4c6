{{- /* Distributions add a suffix to the version (v1.30.4+k3s1, v1.30.4-eks-1a2b3c) that the stock image has not. */ -}}
{{- define "vnpu.scheduler.image" -}}
{{- $image := .Values.scheduler.image -}}
{{- $image.repository }}:{{ default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version) $image.tag }}
{{- end -}}

{{- define "vnpu.scheduler.arguments" -}}
- --config=/etc/kubernetes/scheduler/configuration.yaml
# Health for kubelet and numbers for Prometheus need no token.
- --authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics
{{- end -}}

{{- define "vnpu.extender.port" -}}8888{{- end -}}

{{- define "vnpu.extender.arguments" -}}
- --host=127.0.0.1
- --port={{ include "vnpu.extender.port" . }}
- --policy={{ .Values.scheduler.nodePolicy }}
- --card-policy={{ .Values.scheduler.cardPolicy }}
{{ include "vnpu.settings.arguments" . }}
{{- end -}}

{{- define "vnpu.extender.ask" -}}
import urllib.request as r; r.urlopen("http://127.0.0.1:{{ include "vnpu.extender.port" . }}/{{ . }}", timeout=8)
{{- end -}}

{{- /*
The extender is asked about pods that name one of the managed resources. Memory and core are per card and the nodes
advertise their sum, so that the scheduler's own arithmetic on them would be wrong: it ignores them. Counts it keeps,
since kubelet counts them as well.
*/ -}}
{{- define "vnpu.scheduler.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: {{ include "vnpu.scheduler.name" . }}
  resourceNamespace: {{ .Release.Namespace }}
# Of a part of the nodes the extender could refuse each, while another one has room.
percentageOfNodesToScore: 100
profiles:
  - schedulerName: {{ include "vnpu.schedulerName" . }}
extenders:
  - urlPrefix: http://127.0.0.1:{{ include "vnpu.extender.port" . }}
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    weight: {{ .Values.scheduler.extenderWeight }}
    enableHTTPS: false
    httpTimeout: {{ .Values.scheduler.extenderTimeoutSeconds }}s
    # Names instead of whole nodes: it watches them itself, and 5,000 of them are 50 MB for each pod.
    nodeCacheCapable: true
    # A pod that asks for an NPU cannot be placed without it.
    ignorable: false
    managedResources:
      {{- range .Values.deviceConfig.vnpus.configs }}
      - {name: {{ .resourceName }}, ignoredByScheduler: false}
      - {name: {{ default (printf "%s-memory" .resourceName) .resourceMemoryName }}, ignoredByScheduler: true}
      - {name: {{ default (printf "%s-core" .resourceName) .resourceCoreName }}, ignoredByScheduler: true}
      {{- end }}
{{- end -}}
