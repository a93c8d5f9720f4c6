{{- /* What the schema cannot say of values: where the release goes, and values that belong together. */ -}}
{{- define "vnpu.checks" -}}
{{- if has .Release.Namespace (list "default" "kube-system" "kube-node-lease" "kube-public") -}}
{{- fail (printf "the release goes into the namespace %q, and admission never looks at its release's namespace: install it into one of its own: --namespace vnpu-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
{{- if has .Values.test.namespace (include "vnpu.excludedNamespaces" . | fromJsonArray) -}}
{{- fail (printf "test.namespace: %q: admission never looks at this namespace, name another" .Values.test.namespace) -}}
{{- end -}}
{{- if not (or .Values.node.enabled (dig "limiter" "hook" "" .Values.settings)) -}}
{{- fail "settings.limiter.hook: with node.enabled: false the nodes' own device plugin brings the limiter, and its containers do not start with another hook than its own: set none for HAMi 2.10 and newer, hami for 2.9" -}}
{{- end -}}
{{- end -}}
