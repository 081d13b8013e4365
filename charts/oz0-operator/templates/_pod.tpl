{{/*
The pod of every component: Pod Security "restricted", read-only root, probes on 8081.

Arguments: root, component, and of the component: values, api (it uses the Kubernetes API), identity (edge signs its
certificate), serves (TLS on 8443), grace (seconds), env, mounts and volumes (rendered text), tolerations, spread.

Environment of every component:
  OZ0_NAMESPACE, OZ0_POD_NAME, OZ0_POD_UID, OZ0_NODE   where it runs
  OZ0_TRUST_DOMAIN                                     in identities: spiffe://<trust domain>/...
  OZ0_CLUSTER_DOMAIN                                   suffix of Service names
of controller only:
  OZ0_MODEL_GATEWAY                                    true: the cluster has one
  OZ0_IMAGE                                            image of the sidecar and launcher of tool pods
  OZ0_CALL_RETENTION                                   how long a ToolCall is kept after its end
  OZ0_USER_NAMESPACES                                  prefer | require | off
  OZ0_TOOL_REQUEST_<AMOUNT>, OZ0_TOOL_LIMIT_<AMOUNT>   of a tool's container: CPU, MEMORY, EPHEMERAL_STORAGE

Files, of all but edge, which signs its own: /oz0/identity/token (audience oz0-ca), /oz0/trust/ca.crt.
Ports: 8443 TLS, 8081 health, 9090 metrics.
*/}}
{{- define "oz0.pod" -}}
metadata:
  labels:
    {{- include "oz0.labels" . | nindent 4 }}
    oz0.ai/component: {{ .component }}
spec:
  serviceAccountName: oz0-{{ .component }}
  # The account itself does not mount its token; a pod that uses the API asks for it.
  automountServiceAccountToken: {{ .api | default false }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .spread }}
  topologySpreadConstraints:
    # Preferred, so that one node is enough; counted within a rollout's own pods, or old ones would skew it.
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "oz0.selector" .component | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: {{ .component }}
      image: {{ include "oz0.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: [{{ .component }}]
      env:
        - name: OZ0_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: OZ0_POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: OZ0_POD_UID
          valueFrom: {fieldRef: {fieldPath: metadata.uid}}
        - name: OZ0_NODE
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        - name: OZ0_TRUST_DOMAIN
          value: {{ .root.Values.trustDomain | quote }}
        - name: OZ0_CLUSTER_DOMAIN
          value: {{ .root.Values.clusterDomain | quote }}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
      ports:
        {{- if .serves }}
        - {name: tls, containerPort: 8443}
        {{- end }}
        - {name: health, containerPort: 8081}
        - {name: metrics, containerPort: 9090}
      startupProbe:
        httpGet: {path: /livez, port: health}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /livez, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: health}
        periodSeconds: 3
        timeoutSeconds: 2
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      {{- if .identity }}
      volumeMounts:
        - {name: identity, mountPath: /oz0/identity, readOnly: true}
        - {name: trust, mountPath: /oz0/trust, readOnly: true}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- end }}
  {{- if .identity }}
  volumes:
    # Good for one thing: asking edge for this pod's certificate. The API server refuses its audience.
    - name: identity
      projected:
        sources:
          - serviceAccountToken: {audience: oz0-ca, path: token, expirationSeconds: 3600}
    # Edge publishes it when it first starts. Not optional: the kubelet tries again within seconds what it needs to start a
    # pod, but looks for something optional that has come since only each minute or two.
    - name: trust
      configMap: {name: oz0-trust}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
