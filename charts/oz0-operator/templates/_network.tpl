{{/* Rules of the operator's own NetworkPolicies that more than one component needs. */}}

{{/* Pods of tools, in whatever namespace; admission lets only the controller set this label. */}}
{{- define "oz0.peer.tools" -}}
- namespaceSelector: {}
  podSelector:
    matchExpressions: [{key: oz0.ai/tool, operator: Exists}]
{{- end }}

{{- define "oz0.peer.component" -}}
- podSelector:
    matchLabels:
      {{- include "oz0.selector" . | nindent 6 }}
{{- end }}

{{- define "oz0.egress.tools" -}}
- to:
    {{- include "oz0.peer.tools" . | nindent 4 }}
  ports: [{protocol: TCP, port: 8443}]
{{- end }}

{{- define "oz0.egress.edge" -}}
- to:
    {{- include "oz0.peer.component" "edge" | nindent 4 }}
  ports: [{protocol: TCP, port: 8443}]
{{- end }}

{{- define "oz0.egress.dns" -}}
- to:
    {{- toYaml .Values.dns.peers | nindent 4 }}
  ports:
    - {protocol: UDP, port: {{ .Values.dns.port }}}
    - {protocol: TCP, port: {{ .Values.dns.port }}}
{{- end }}

{{/*
The API server. Most plugins judge the address behind the Service, some the Service's own, so both are allowed. Private
ranges stay open beside what was found: the addresses of a control plane may change between two upgrades of this chart.
*/}}
{{- define "oz0.egress.apiServer" -}}
{{- $cidrs := .Values.apiServer.cidrs -}}
{{- $ports := .Values.apiServer.ports -}}
{{- if not $cidrs -}}
{{- $cidrs = list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" "fc00::/7" -}}
{{- $found := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" -}}
{{- $addresses := list -}}
{{- range (dig "endpoints" list $found) -}}{{- $addresses = concat $addresses .addresses -}}{{- end -}}
{{- range (dig "ports" list $found) -}}{{- $ports = append $ports .port -}}{{- end -}}
{{- $addresses = concat $addresses (dig "spec" "clusterIPs" list (lookup "v1" "Service" "default" "kubernetes")) -}}
{{- range $addresses -}}{{- $cidrs = append $cidrs (printf "%s/%s" . (contains ":" . | ternary "128" "32")) -}}{{- end -}}
{{- end -}}
- to:
    {{- range $cidrs | uniq }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- $numbers := list -}}
    {{- range $ports -}}{{- $numbers = append $numbers (int .) -}}{{- end -}}
    {{- range $numbers | uniq }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/* Metrics, for the namespaces that values name; health is the kubelet's, whose own node every policy lets in. */}}
{{- define "oz0.ingress.metrics" -}}
{{- with .Values.metrics.namespaces }}
- from:
    - namespaceSelector:
        matchExpressions:
          - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
  ports: [{protocol: TCP, port: 9090}]
{{- end }}
{{- end }}
