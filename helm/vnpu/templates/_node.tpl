{{- /* The host's files are seen below /host; what containers get is told by the host's own paths. */ -}}
{{- define "vnpu.installer.arguments" -}}
- --host-root=/host
- --kubelet-checkpoint={{ .Values.node.kubeletDir }}/device-plugins/kubelet_internal_checkpoint
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

{{- /* libdcmi needs libraries of the driver, which the loader looks for where they are on the host. */ -}}
{{- define "vnpu.node.environment" -}}
env:
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
  - name: LD_LIBRARY_PATH
    value: /host/usr/local/Ascend/driver/lib64/driver:/host/usr/local/Ascend/driver/lib64/common
{{- end -}}

{{- /*
Each of the three needs it. The installer writes below the host's /usr/local, which SELinux allows to no other container,
and reads the mounts of all processes to see which version is still in use, which AppArmor forbids others. Device plugin
and exporter open /dev/davinci* through the driver's library, and the plugin switches device-share.
*/ -}}
{{- define "vnpu.node.privileged" -}}
securityContext:
  runAsUser: 0
  privileged: true
  readOnlyRootFilesystem: true
{{- end -}}
