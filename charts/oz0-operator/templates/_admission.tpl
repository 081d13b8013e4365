{{/*
Parts of the admission policies. They guard what our names, labels and accounts mean (src/README.md): whoever may write pods
in a namespace must not thereby become a tool, or take a tool out of its sandbox. No webhook: the API server decides by
itself, so nothing that users apply waits for a pod of ours.

A policy fails closed, and an expression that errs refuses; so every optional field is asked for before it is read.
*/}}

{{- define "oz0.admission.metadata" -}}
metadata:
  name: {{ .name }}.oz0.ai
  labels:
    {{- include "oz0.labels" . | nindent 4 }}
{{- end }}

{{- define "oz0.admission.binding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
{{ include "oz0.admission.metadata" . }}
spec:
  policyName: {{ .name }}.oz0.ai
  validationActions: [Deny, Audit]
{{- end }}

{{/* CEL: the request is our controller's. What it may do is limited by admission/controller.yaml. */}}
{{- define "oz0.cel.controller" -}}
request.userInfo.username == '{{ include "oz0.user" (dict "root" . "component" "controller") }}'
{{- end }}

{{/* CEL: the request is a gateway's. */}}
{{- define "oz0.cel.gateway" -}}
request.userInfo.username == '{{ include "oz0.user" (dict "root" . "component" "gateway") }}'
{{- end }}

{{/*
CEL: the request is of one of Kubernetes' own controllers, by their names in kube-system (argument: root, names). Where
kube-controller-manager has one account for all, of that one.
*/}}
{{- define "oz0.cel.kubernetes" -}}
{{- $users := list "system:kube-controller-manager" -}}
{{- range .names -}}{{- $users = append $users (printf "system:serviceaccount:kube-system:%s" .) -}}{{- end -}}
request.userInfo.username in ['{{ concat $users .root.Values.admission.trustedUsers | join "', '" }}']
{{- end }}

{{/* CEL: the requester is of the break-glass group. */}}
{{- define "oz0.cel.breakGlass" -}}
{{- with .Values.admission.breakGlassGroup -}}
request.userInfo.?groups.orValue([]).exists(group, group == '{{ . }}')
{{- else -}}
false
{{- end -}}
{{- end }}

{{/* CEL: metadata (argument: an object's name in CEL) with a name or a label that is ours. */}}
{{- define "oz0.cel.marked" -}}
({{ . }}.metadata.name.startsWith('oz0t-') || {{ include "oz0.cel.labelled" . }})
{{- end }}
{{- define "oz0.cel.labelled" -}}
{{ . }}.metadata.?labels.orValue({}).exists(key, key == 'oz0.ai/tool' || key == 'oz0.ai/plugin')
{{- end }}
