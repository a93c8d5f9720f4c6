{{- /* The host's files are seen below /host; what containers get is told by the host's own paths. */ -}}
{{- define "vnpu.installer.arguments" -}}
- --host-root=/host
{{- end -}}

{{- /* Takes (list . mode). */ -}}
{{- define "vnpu.devicePlugin.arguments" -}}
- --mode={{ last . }}
- --config=/etc/vnpu/node/node-config.yaml
- --device-config=/etc/vnpu/device-config/device-config.yaml
- --host-root=/host
{{- end -}}

{{- define "vnpu.exporter.arguments" -}}
- --port={{ .Values.node.exporterPort }}
- --device-config=/etc/vnpu/device-config/device-config.yaml
- --host-root=/host
{{- end -}}

{{- define "vnpu.nodeName" -}}
env:
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end -}}
