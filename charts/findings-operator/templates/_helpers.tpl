{{- define "findings.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "findings.labels" -}}
app.kubernetes.io/name: findings-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* What selects the pods of a component. It never changes: a Deployment's selector cannot. */ -}}
{{- define "findings.selector" -}}
app.kubernetes.io/name: findings-operator
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "findings.componentLabels" -}}
{{ include "findings.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* Whether this release holds what the API server of the kinds needs: CRDs, roles, policies. */ -}}
{{- define "findings.plane" -}}
{{- if and .Chart.IsRoot (hasKey .Values "enabled") }}
{{- fail "enabled is only for the condition of a chart that depends on this one: remove it, or uninstall the release" }}
{{- end }}
{{- if and .Values.planeOnly .Values.findingsKubeconfigSecret }}
{{- fail "planeOnly runs nothing that could use findingsKubeconfigSecret: set one of them, in a release each" }}
{{- end }}
{{- if or .Values.planeOnly (not .Values.findingsKubeconfigSecret) }}yes{{ end -}}
{{- end -}}

{{- /* Whether this release runs anything. Then it has Services, whose names have no dots. */ -}}
{{- define "findings.workloads" -}}
{{- if and (not .Values.planeOnly) (contains "." (include "findings.fullname" .)) }}
{{- fail (printf "no Service can be named after the release %q: set fullnameOverride to a name without dots" .Release.Name) }}
{{- end }}
{{- if not .Values.planeOnly }}yes{{ end -}}
{{- end -}}

{{- /* Whether this release runs the controllers. */ -}}
{{- define "findings.controllers" -}}
{{- if and (not .Values.controller.enabled) (not .Values.planeOnly) (not (and .Values.findingsKubeconfigSecret .Values.api.cursorKeysSecret)) }}
{{- fail "without controller.enabled another release must run the controllers: set findingsKubeconfigSecret and api.cursorKeysSecret" }}
{{- end }}
{{- if and .Values.controller.enabled (include "findings.workloads" .) }}yes{{ end -}}
{{- end -}}

{{- define "findings.image" -}}
{{- with .Values.image -}}
{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "findings.cursorKeysSecret" -}}
{{ include "findings.fullname" . }}-cursor-keys
{{- end -}}

{{- /* A process's kubeconfig for the API server of the kinds, and the token that it may name as its tokenFile. */ -}}
{{- define "findings.planeVolume" -}}
- name: plane
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .secret | quote }}
          items:
            - key: {{ .component }}.kubeconfig
              path: {{ .component }}.kubeconfig
      - secret:
          name: {{ .secret | quote }}
          optional: true
          items:
            - key: {{ .component }}.token
              path: {{ .component }}.token
{{- end -}}

{{- define "findings.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "findings.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The environment of a component's container, which is named after it. */ -}}
{{- define "findings.env" -}}
# The garbage collector works harder from 90 % of it on, before the kernel ends the process.
- name: FINDINGS_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .component }}
      resource: limits.memory
- name: GOMEMLIMIT # for earlier images, which do not read FINDINGS_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .component }}
      resource: limits.memory
{{- if .root.Values.caCertificatesConfigMap }}
- name: SSL_CERT_DIR # besides Mozilla's authorities, which are in the image
  value: /etc/findings/ca-certificates
{{- end }}
{{- end -}}

{{- /* Replicas keep apart, by host and by zone, where there are several. */ -}}
{{- define "findings.topologySpread" -}}
{{- $selector := include "findings.selector" . -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end -}}

{{- /* Where pods run, and what else people put on them. */ -}}
{{- define "findings.scheduling" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "findings.servicePort" -}}
{{- .Values.service.port | default (ternary 443 80 (not (empty .Values.api.tls.secret))) -}}
{{- end -}}

{{- /* The ports of DNS, for a NetworkPolicy's egress. */ -}}
{{- define "findings.dnsPorts" -}}
{{- range .Values.networkPolicy.dnsPorts }}
- port: {{ . }}
  protocol: UDP
- port: {{ . }}
  protocol: TCP
{{- end }}
{{- end -}}

{{- /* The Service of a component's metrics. */ -}}
{{- define "findings.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "findings.fullname" .root }}-{{ .component }}-metrics
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "findings.componentLabels" . | nindent 4 }}
spec:
  clusterIP: None
  selector:
    {{- include "findings.selector" . | nindent 4 }}
  ports:
    - name: metrics
      port: {{ .port }}
      targetPort: {{ .targetPort }}
{{- end -}}

{{- define "findings.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "findings.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "findings.componentLabels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready must not hold up a node's drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "findings.selector" . | nindent 6 }}
{{- end -}}
