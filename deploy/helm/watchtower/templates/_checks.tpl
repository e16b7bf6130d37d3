{{- /* Refuses what would lose or double payments, or show secrets. */ -}}
{{- define "checks" -}}
{{- $half := .name -}}
{{- $v := .values -}}
{{- $embedded := eq $v.store "" -}}
{{- if not (index .root.Values.image .name) -}}
  {{- fail (printf "image.%s is empty: name the repository of its image" $half) -}}
{{- end -}}
{{- if and $embedded (gt (int $v.replicas) 1) -}}
  {{- fail (printf "%s.replicas is %d with the embedded store: its files belong to one process. Set %s.store to a Postgres URL" $half (int $v.replicas) $half) -}}
{{- end -}}
{{- if and (gt (int $v.replicas) 1) (not $v.vaultKeySecret) -}}
  {{- fail (printf "%s.replicas is %d without %s.vaultKeySecret: replicas that do not share the vault's key cannot send each other's transactions" $half (int $v.replicas) $half) -}}
{{- end -}}
{{- if and (not $embedded) (not $v.vaultKeySecret) -}}
  {{- fail (printf "%s.store is a Postgres without %s.vaultKeySecret: the vault's key would be lost with the pod, and all signed bytes with it" $half $half) -}}
{{- end -}}
{{- if and (not $embedded) (not (regexMatch "^postgres(ql)?://" $v.store)) -}}
  {{- fail (printf "%s.store is neither empty nor a Postgres URL" $half) -}}
{{- end -}}
{{- if regexMatch "^[a-z]+://[^/@]*:[^/@]*@|[?&]password=" $v.store -}}
  {{- fail (printf "%s.store has a password, which everybody who reads the ConfigMap would see: put it in a Secret, and its name in %s.passwordSecret" $half $half) -}}
{{- end -}}
{{- range $name := list "listen" "metrics-listen" "store" "vault-key-file" "shutdown-grace" -}}
  {{- if hasKey $v.settings $name -}}
    {{- fail (printf "%s.settings has %s, which the chart sets" $half $name) -}}
  {{- end -}}
{{- end -}}
{{- if hasKey ($v.settings.relay | default dict) "listen" -}}
  {{- fail (printf "%s.settings has relay.listen, which the chart sets" $half) -}}
{{- end -}}
{{- if (index $v.settings "open-access") -}}
  {{- fail (printf "%s.settings has open-access: whoever reaches the pod could send transactions. Create API keys" $half) -}}
{{- end -}}
{{- if (index ($v.settings.signers | default dict) "environment") -}}
  {{- fail (printf "%s.settings has signers.environment: keys in the environment can be read by whoever can look at the pod. Use files of %s.secrets" $half $half) -}}
{{- end -}}
{{- if le (int $v.terminationGraceSeconds) (add (int $v.shutdownGraceSeconds) 5 | int) -}}
  {{- fail (printf "%s.terminationGraceSeconds (%d) must be more than 5 s above %s.shutdownGraceSeconds (%d): Kubernetes would kill attempts that are under way" $half (int $v.terminationGraceSeconds) $half (int $v.shutdownGraceSeconds)) -}}
{{- end -}}
{{- if not $v.settings.chains -}}
  {{- fail (printf "%s.settings.chains is empty: name at least one chain" $half) -}}
{{- end -}}
{{- end -}}
