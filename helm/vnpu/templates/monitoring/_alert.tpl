{{- /* Takes (list name severity for expression summary values), the last being monitoring.prometheusRule. */ -}}
{{- define "vnpu.alert" -}}
{{- $url := (index . 5).runbookUrl -}}
- alert: {{ index . 0 }}
  expr: {{ index . 3 | quote }}
  for: {{ index . 2 }}
  labels: {severity: {{ index . 1 }}}
  annotations:
    summary: {{ index . 4 | quote }}
    {{- if $url }}
    runbook_url: {{ printf "%s#%s" $url (lower (index . 0)) | quote }}
    {{- end }}
{{- end -}}
