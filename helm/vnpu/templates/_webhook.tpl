{{- define "vnpu.webhook.arguments" -}}
- {{ printf "--host=%s" .Values.webhook.host | quote }}
- --port={{ .Values.webhook.port }}
- --workers={{ .Values.webhook.workers }}
- --drain-seconds={{ .Values.webhook.drainSeconds }}
{{- if eq .Values.tls.mode "self" }}
- --certs=self
- --namespace={{ .Release.Namespace }}
- --service={{ include "vnpu.webhook.name" . }}
- --secret={{ include "vnpu.tls.secret" . }}
- --webhook-configurations={{ include "vnpu.configuration.name" . }}
{{- else }}
- --certs=files
- --cert=/etc/vnpu/tls/tls.crt
- --key=/etc/vnpu/tls/tls.key
{{- end }}
{{ include "vnpu.settings.arguments" . }}
{{- end -}}

{{- define "vnpu.webhook.probe" -}}
httpGet: {scheme: HTTPS, port: https, path: {{ . }}}
timeoutSeconds: 3
{{- end -}}

{{- define "vnpu.configuration.metadata" -}}
metadata:
  name: {{ include "vnpu.configuration.name" . }}
  labels:
    {{- include "vnpu.labels" (list . "webhook") | nindent 4 }}
  {{- $annotations := deepCopy .Values.webhook.configurationAnnotations }}
  {{- if eq .Values.tls.mode "certManager" }}
  {{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "vnpu.webhook.name" .)) }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* Namespaces whose pods are never looked at, as a JSON list: the first three whatever the values say. */ -}}
{{- define "vnpu.excludedNamespaces" -}}
{{- concat (list "kube-system" "kube-node-lease" .Release.Namespace) .Values.webhook.excludedNamespaces | uniq | toJson -}}
{{- end -}}

{{- /*
What all webhooks have in common. Takes (list . "path").

There is no caBundle: it is published into the live object, by a patch of that one field, which every upgrade leaves
alone. matchPolicy Equivalent: an object that comes in another version of its API is asked about as well.
*/ -}}
{{- define "vnpu.configuration.common" -}}
{{- $root := first . -}}
admissionReviewVersions: [v1]
clientConfig:
  service:
    name: {{ include "vnpu.webhook.name" $root }}
    namespace: {{ $root.Release.Namespace }}
    port: {{ $root.Values.webhook.servicePort }}
    path: {{ last . }}
sideEffects: None
timeoutSeconds: {{ $root.Values.webhook.timeoutSeconds }}
matchPolicy: Equivalent
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ include "vnpu.excludedNamespaces" $root }}}
    - {key: hami.io/webhook, operator: NotIn, values: [ignore]}
{{- end -}}

{{- /* Takes (list "name" expression). */ -}}
{{- define "vnpu.condition" -}}
- name: {{ first . }}
  expression: |-
    {{- last . | nindent 4 }}
{{- end -}}
