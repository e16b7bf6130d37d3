{{- /* A half is a dict: root, name (watchtower or relayer), values. */ -}}

{{- define "fullname" -}}
{{- $release := .root.Release.Name -}}
{{- if eq $release .name }}{{ $release }}{{ else }}{{ printf "%s-%s" $release .name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: watchtower
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "image" -}}
{{- $name := index .root.Values.image .name -}}
{{- printf "%s:%s" $name (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- /* The store's URL; empty for the embedded store. */ -}}
{{- define "store" -}}
{{- if .values.store -}}
{{- if .values.passwordSecret -}}
{{- printf "%s%spassfile=/etc/watchtower/database/pgpass" .values.store (ternary "&" "?" (contains "?" .values.store)) -}}
{{- else -}}
{{- .values.store -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The configuration file. The chart's own members win: the checks refuse to have them set. */ -}}
{{- define "settings" -}}
{{- $own := dict
  "listen" "0.0.0.0:8420"
  "metrics-listen" "0.0.0.0:8421"
  "store" (include "store" . | default "embedded:/var/lib/watchtower")
  "vault-key-file" (ternary "/etc/watchtower/vault/vault.key" "/var/lib/watchtower/vault.key" (ne .values.vaultKeySecret ""))
  "shutdown-grace" (printf "%ds" (int .values.shutdownGraceSeconds)) -}}
{{- if eq .name "relayer" }}{{ $_ := set $own "relay" (dict "listen" "0.0.0.0:8422") }}{{ end -}}
{{- merge $own .values.settings | toYaml -}}
{{- end -}}
