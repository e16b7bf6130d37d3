{{- /* What every pod of a half has: identity, volumes and the program. */ -}}
{{- define "volumes" -}}
- name: config
  configMap:
    name: {{ .config }}
{{- if .half.values.vaultKeySecret }}
- name: vault
  secret:
    secretName: {{ .half.values.vaultKeySecret }}
    defaultMode: 0440
    items: [{key: vault.key, path: vault.key}]
{{- end }}
{{- if and .half.values.store .half.values.passwordSecret }}
- name: database
  secret:
    secretName: {{ .half.values.passwordSecret }}
    defaultMode: 0440
    items: [{key: pgpass, path: pgpass}]
{{- end }}
{{- range .half.values.secrets }}
- name: secret-{{ . }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "mounts" -}}
- {name: config, mountPath: /etc/watchtower/config, readOnly: true}
{{- if .values.vaultKeySecret }}
- {name: vault, mountPath: /etc/watchtower/vault, readOnly: true}
{{- end }}
{{- if and .values.store .values.passwordSecret }}
- {name: database, mountPath: /etc/watchtower/database, readOnly: true}
{{- end }}
{{- range .values.secrets }}
- {name: secret-{{ . }}, mountPath: /etc/watchtower/secrets/{{ . }}, readOnly: true}
{{- end }}
{{- if not .values.store }}
- {name: data, mountPath: /var/lib/watchtower}
{{- end }}
{{- end -}}

{{- define "container" -}}
image: {{ include "image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "pod" -}}
serviceAccountName: {{ include "fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "serving" -}}
metadata:
  labels: {{- include "labels" . | nindent 4 }}
  annotations:
    # A change of the settings restarts the pods.
    checksum/config: {{ include "settings" . | sha256sum }}
{{- with .values.annotations }}
{{ toYaml . | indent 4 }}
{{- end }}
spec:
  {{- include "pod" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ int .values.terminationGraceSeconds }}
  {{- if gt (int .values.replicas) 1 }}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "selector" . | nindent 8 }}
  {{- end }}
  containers:
  - name: {{ .name }}
    {{- include "container" . | nindent 4 }}
    args: [serve, --config, /etc/watchtower/config/watchtower.yaml]
    ports:
    - {name: api, containerPort: 8420}
    - {name: operators, containerPort: 8421}
    {{- if eq .name "relayer" }}
    - {name: intents, containerPort: 8422}
    {{- end }}
    # A start may rebuild read models from the log, which takes minutes with many millions of events.
    startupProbe:
      httpGet: {path: /livez, port: api}
      periodSeconds: 5
      failureThreshold: 120
    livenessProbe:
      httpGet: {path: /livez, port: api}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: api}
      periodSeconds: 5
      timeoutSeconds: 5
    # Endpoints are removed while the process still serves: requests in between are answered.
    lifecycle:
      preStop:
        sleep: {seconds: 3}
    resources: {{- toYaml .values.resources | nindent 6 }}
    volumeMounts: {{- include "mounts" . | nindent 4 }}
  volumes: {{- include "volumes" (dict "half" . "config" (include "fullname" .)) | nindent 2 }}
{{- end -}}
