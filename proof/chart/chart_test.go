package chart

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the manifests that the tests compare")

// The rest of the checks are those of ../manifests, which reads what this test holds: so the manifests
// in testdata are what the chart renders.
func TestManifests(t *testing.T) {
	values, err := Values()
	if err != nil {
		t.Fatal(err)
	}
	if len(values) < 5 {
		t.Fatalf("%d files of values", len(values))
	}
	for name, text := range values {
		t.Run(name, func(t *testing.T) {
			got, notes, err := Render(text)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(notes, "first-key") {
				t.Errorf("the notes do not say how to make a key: %s", notes)
			}
			same(t, filepath.Join("testdata", "manifests", name+".yaml"), got)
		})
	}
}

// The plain manifests are what the chart renders for three replicas, and Kustomize takes them.
func TestKustomize(t *testing.T) {
	text, err := os.ReadFile("testdata/values/plain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := Render(text)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "../../deploy/kustomize/watchtower.yaml", bytes.ReplaceAll(got, []byte("app.kubernetes.io/managed-by: Helm"), []byte("app.kubernetes.io/managed-by: kustomize")))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/kustomize")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range built.Resources() {
		kinds[r.GetKind()]++
	}
	if kinds["Deployment"] != 1 || kinds["Job"] != 1 || kinds["NetworkPolicy"] != 1 {
		t.Errorf("Kustomize built %v", kinds)
	}
}

// same compares a file with what it should be, or writes it with -update.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the chart renders: go test -C proof/chart -update", path)
	}
}

// Values that could lose or double payments, or show a secret, are refused with the reason.
func TestRefusals(t *testing.T) {
	base := "image: {watchtower: registry.example/watchtower, relayer: registry.example/relayer}\n"
	chains := "chains: [{id: 1, endpoints: [{url: \"https://ethereum.example\"}]}]"
	half := func(name, more, settings string) string {
		off := map[string]string{"watchtower": "", "relayer": "watchtower: {enabled: false, replicas: 1, settings: {}}\n"}[name]
		return base + off + fmt.Sprintf("%s:\n  enabled: true\n  %s\n  settings: {%s%s}\n", name, more, chains, settings)
	}
	postgres := "store: \"postgres://watchtower@postgres:5432/watchtower\""
	for _, c := range []struct{ name, values, reason string }{
		{"two replicas on files", half("watchtower", "replicas: 2\n  vaultKeySecret: vault", ""), "belong to one process"},
		{"two replicas without a shared key", half("watchtower", "replicas: 2\n  "+postgres, ""), "do not share the vault's key"},
		{"the vault's key in the pod", half("watchtower", postgres, ""), "would be lost with the pod"},
		{"another store", half("watchtower", "store: \"esdb://kurrentdb:2113\"\n  vaultKeySecret: vault", ""), "neither empty nor a Postgres URL"},
		{"a password in the URL", half("watchtower", "store: \"postgres://watchtower:secret@postgres/watchtower\"\n  vaultKeySecret: vault", ""), "has a password"},
		{"a password in the query", half("watchtower", "store: \"postgres://postgres/watchtower?user=w&password=secret\"\n  vaultKeySecret: vault", ""), "has a password"},
		{"open access", half("watchtower", "replicas: 1", ", open-access: true"), "whoever reaches the pod"},
		{"open access as text", half("relayer", "replicas: 1", ", open-access: \"true\""), "whoever reaches the pod"},
		{"keys in the environment", half("relayer", "replicas: 1", ", signers: {environment: true}"), "keys in the environment"},
		{"a short grace", half("watchtower", "replicas: 1\n  shutdownGraceSeconds: 40\n  terminationGraceSeconds: 45", ""), "would kill attempts"},
		{"the chart's own setting", half("watchtower", "replicas: 1", ", listen: \"0.0.0.0:80\""), "which the chart sets"},
		{"another grace", half("watchtower", "replicas: 1", ", shutdown-grace: 1h"), "which the chart sets"},
		{"no chain", base, "name at least one chain"},
		{"no image", "watchtower: {settings: {" + chains + "}}", "name the repository"},
		{"a member that is not there", base + "watchtower: {replica: 3}", "replica"},
		{"an environment", half("watchtower", "env: [{name: RELAYER_PRIVATE_KEY_0, value: \"1\"}]", ""), "env"},
		{"half a replica", half("watchtower", "replicas: 0", ""), "replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Render([]byte(c.values))
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want %q", err, c.reason)
			}
			if err != nil && strings.Contains(err.Error(), "secret@") {
				t.Errorf("the reason shows the password: %v", err)
			}
		})
	}
}

// The Prometheus operator's types take what the chart renders for it.
func TestMonitors(t *testing.T) {
	met := map[string]int{}
	for _, name := range []string{"replicas", "both"} {
		for _, doc := range manifests(t, name) {
			var head struct{ Kind string }
			check(t, yaml.Unmarshal(doc, &head))
			met[head.Kind]++
			switch head.Kind {
			case "ServiceMonitor":
				check(t, yaml.UnmarshalStrict(doc, new(monitoring.ServiceMonitor)))
			case "PrometheusRule":
				var rule monitoring.PrometheusRule
				check(t, yaml.UnmarshalStrict(doc, &rule))
				if len(rule.Spec.Groups) == 0 {
					t.Errorf("%s: a rule without groups", name)
				}
			}
		}
	}
	if met["ServiceMonitor"] != 3 || met["PrometheusRule"] != 4 {
		t.Errorf("met %v", met)
	}
}

// The programs take the configuration files that the chart writes.
func TestSettings(t *testing.T) {
	values, err := Values()
	check(t, err)
	folder := t.TempDir()
	for _, program := range []string{"watchtower", "relayer"} {
		build := exec.Command("go", "build", "-o", filepath.Join(folder, program), "./cmd/"+program)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	met := map[string]int{}
	for name := range values {
		for _, doc := range manifests(t, name) {
			var c core.ConfigMap
			if yaml.Unmarshal(doc, &c) != nil || c.Kind != "ConfigMap" || strings.HasSuffix(c.Name, "-migrate") {
				continue
			}
			program := c.Labels["app.kubernetes.io/name"]
			met[program]++
			file := filepath.Join(folder, name+"-"+program+".yaml")
			check(t, os.WriteFile(file, []byte(c.Data["watchtower.yaml"]), 0o600))
			out, err := exec.Command(filepath.Join(folder, program), "config", "validate", "--config", file).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %s config validate: %v\n%s", name, program, err, out)
			}
		}
	}
	if met["watchtower"] < 4 || met["relayer"] < 2 {
		t.Errorf("met %v", met)
	}
}

// The chart's rules are the rules of deploy/prometheus, which other tests hold against the metrics.
func TestRules(t *testing.T) {
	for _, name := range []string{"rules.yml", "relay.yml"} {
		want, err := os.ReadFile("../../deploy/prometheus/" + name)
		check(t, err)
		same(t, filepath.Join(Folder, "rules", name), want)
	}
}

func manifests(t *testing.T, name string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "manifests", name+".yaml"))
	check(t, err)
	return bytes.Split(text, []byte("\n---\n"))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
