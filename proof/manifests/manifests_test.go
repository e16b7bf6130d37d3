package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../chart/testdata/manifests"

func TestManifests(t *testing.T) {
	if err := Check(folder); err != nil {
		t.Error(err)
	}
	if err := Check("../../deploy/kustomize"); err != nil && !strings.Contains(err.Error(), "Kustomization") {
		t.Error(err)
	}
}

// The checks find what they are for.
func TestChecksFind(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "both.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, now, says string }{
		{"an unknown member", "enableServiceLinks: false", "enableServiceLink: false", "unknown field"},
		{"a member at the wrong place", "terminationGracePeriodSeconds: 40", "replicas: 40", "unknown field"},
		{"a number that is text", "replicas: 2", "replicas: two", "cannot unmarshal"},
		{"a writable root", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write to its root"},
		{"root", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		{"an open Secret", "defaultMode: 0440", "defaultMode: 0444", "may read the Secret"},
		{"a mount without a volume", "{name: vault, mountPath: /etc/watchtower/vault", "{name: vaults, mountPath: /etc/watchtower/vault", "which is not there"},
		{"a port that nobody has", "targetPort: intents", "targetPort: intent", "has no port intent"},
		{"a key that is made by itself", "suspend: true", "suspend: false", "runs by itself"},
		{"a token", "automountServiceAccountToken: false\n      enable", "automountServiceAccountToken: true\n      enable", "a token of the cluster"},
		{"a short grace", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 20", "killed before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.ReplaceAll(string(text), c.old, c.now)
			if changed == string(text) {
				t.Fatalf("%q is not in the manifests", c.old)
			}
			into := t.TempDir()
			if err := os.WriteFile(filepath.Join(into, "changed.yaml"), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Check(into); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
