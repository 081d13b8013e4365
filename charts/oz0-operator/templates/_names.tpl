{{/* Labels of everything in the chart; `component` may be absent. */}}
{{- define "oz0.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: oz0-operator
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/*
What selects a component's pods: in its workload, its Service, its disruption budget and every NetworkPolicy, so that
what a Service sends to and what a policy allows cannot drift apart.
*/}}
{{- define "oz0.selector" -}}
app.kubernetes.io/name: oz0-operator
oz0.ai/component: {{ . }}
{{- end }}

{{- define "oz0.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The user name of a component's ServiceAccount. */}}
{{- define "oz0.user" -}}
system:serviceaccount:{{ .root.Release.Namespace }}:oz0-{{ .component }}
{{- end }}
