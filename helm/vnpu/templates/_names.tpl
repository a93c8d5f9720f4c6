{{- define "vnpu.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- /* A release's name may have dots, a Service's may not. */ -}}
{{- $release := replace "." "-" .Release.Name -}}
{{- ternary $release (printf "%s-%s" $release $name) (contains $name $release) | trunc 38 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vnpu.webhook.name" -}}{{ include "vnpu.fullname" . }}-webhook{{- end -}}
{{- define "vnpu.scheduler.name" -}}{{ include "vnpu.fullname" . }}-scheduler{{- end -}}
{{- define "vnpu.node.name" -}}{{ include "vnpu.fullname" . }}-device-plugin{{- end -}}

{{- /*
Mutating webhooks are called in the order of their configurations' names, and one is asked a second time
(reinvocationPolicy) only if it was called before the change. Last by name, ours sees what service meshes, sidecar
injectors, Volcano's and HAMi's webhooks have made of a pod, and completes the containers that they added. The
validating configuration has the same name, so that one name finds, and one command removes, both.
*/ -}}
{{- define "vnpu.configuration.name" -}}zz-{{ include "vnpu.fullname" . }}{{- end -}}

{{- /* Where the serving certificate is: the Secret that the webhook keeps, cert-manager's, or the user's. */ -}}
{{- define "vnpu.tls.secret" -}}
{{- if eq .Values.tls.mode "files" -}}
{{- required "tls.secretName: the kubernetes.io/tls Secret to serve is missing; tls.mode files needs one" .Values.tls.secretName -}}
{{- else -}}
{{- include "vnpu.webhook.name" . }}-tls
{{- end -}}
{{- end -}}

{{- /* Takes (list . "component"). */ -}}
{{- define "vnpu.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "vnpu.labels" -}}
{{- $root := first . -}}
{{ include "vnpu.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: vnpu
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "vnpu.image" -}}
{{- $image := .Values.image -}}
image: {{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}

{{- /* The image of the node parts, which may be a version ahead. */ -}}
{{- define "vnpu.node.image" -}}
{{- $image := .Values.image -}}
{{- with .Values.node.tag -}}
image: {{ $image.repository }}:{{ . }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- else -}}
{{- include "vnpu.image" $ -}}
{{- end -}}
{{- end -}}

{{- define "vnpu.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Pod Security "restricted": of a pod, and of each of its containers. */ -}}
{{- define "vnpu.restricted.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "vnpu.restricted.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- /* One replica on a node, and in a zone, where the cluster has as many. Takes (list . "component"). */ -}}
{{- define "vnpu.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "vnpu.selector" $ | nindent 8 }}
  {{- end }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "vnpu.selector" . | nindent 14 }}
{{- end -}}

{{- define "vnpu.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
