// Package chart renders the Helm chart of deploy/helm as Helm itself does. It is a module of its own,
// because nothing else is to depend on Helm and Kubernetes.
package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Folder is the chart, relative to this package.
const Folder = "../../deploy/helm/watchtower"

// Render returns the manifests of a release named watchtower, for a file of values: in the order of
// their templates, the notes last. It fails as helm install does if the chart refuses the values.
func Render(values []byte) (manifests []byte, notes string, err error) {
	c, err := loader.Load(Folder)
	if err != nil {
		return nil, "", fmt.Errorf("load the chart: %w", err)
	}
	given, err := chartutil.ReadValues(values)
	if err != nil {
		return nil, "", fmt.Errorf("read the values: %w", err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "watchtower", Namespace: "payments", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text
		case text != "":
			fmt.Fprintf(&out, "%s\n", strings.TrimPrefix("---\n"+strings.TrimPrefix(text, "---\n"), "\n"))
		}
	}
	return out.Bytes(), notes, nil
}

// Values returns the files of values that the tests render, by name.
func Values() (map[string][]byte, error) {
	entries, err := os.ReadDir("testdata/values")
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		if all[name], err = os.ReadFile("testdata/values/" + e.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
