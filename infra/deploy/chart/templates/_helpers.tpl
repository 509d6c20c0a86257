{{- define "tidegate.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidegate.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Roles in the order in which an upgrade replaces them (docs/operate/production.md). Each waits for the previous one. */}}
{{- define "tidegate.order" -}}
projections collect scoring api gate webhooks
{{- end }}

{{/* A hash of the image, by which pods of this release are selected. */}}
{{- define "tidegate.release" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | sha256sum | trunc 10 }}
{{- end }}

{{/* The maximum of database connections per pod of a role. `values`: those of the role. */}}
{{- define "tidegate.connections" -}}
{{ empty .root.Values.settings.KAFKA_BROKERS | ternary 4 0 | add .values.connections }}
{{- end }}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Settings of all pods. */}}
{{- define "tidegate.pod" -}}
serviceAccountName: {{ .Values.serviceAccountName }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  # The group that can read mounted secrets.
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "tidegate.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Environment variables. `secrets`: names of the secret settings that the process reads. */}}
{{- define "tidegate.env" -}}
{{- range .secrets }}
- name: {{ . }}_FILE
  value: /run/secrets/tidegate/{{ . }}
{{- end }}
{{- $settings := .root.Values.settings }}
{{- if and .root.Values.ingress.enabled (not $settings.PUBLIC_URL) }}
- name: PUBLIC_URL
  value: {{ printf "https://%s" .root.Values.ingress.host | quote }}
{{- end }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "tidegate.mounts" -}}
- name: secrets
  mountPath: /run/secrets/tidegate
  readOnly: true
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Volumes. `secrets`: as above. `database`: name of the Secret with DATABASE_URL. */}}
{{- define "tidegate.volumes" -}}
{{- $root := .root }}
{{- $database := .database }}
- name: secrets
  projected:
    # Octal 0440.
    defaultMode: 288
    sources:
      {{- range .secrets }}
      - secret:
          name: {{ eq . "DATABASE_URL" | ternary $database (required "secrets.existingSecret is not set" $root.Values.secrets.existingSecret) }}
          items: [{ key: {{ . }}, path: {{ . }} }]
      {{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
