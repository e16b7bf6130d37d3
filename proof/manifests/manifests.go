// Package manifests reads the manifests that ../chart renders with Kubernetes' own types, strictly: an
// unknown or misplaced member is an error. This module requires the oldest Kubernetes that is tested;
// the modules below it require newer ones.
package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// operators is the API of the Prometheus operator, whose types ../chart tests.
const operators = "monitoring.coreos.com/v1"

// kinds returns an empty object of a kind.
func kinds(version, kind string) any {
	switch version + " " + kind {
	case "v1 ConfigMap":
		return new(core.ConfigMap)
	case "v1 Service":
		return new(core.Service)
	case "v1 ServiceAccount":
		return new(core.ServiceAccount)
	case "apps/v1 Deployment":
		return new(apps.Deployment)
	case "apps/v1 StatefulSet":
		return new(apps.StatefulSet)
	case "batch/v1 Job":
		return new(batch.Job)
	case "batch/v1 CronJob":
		return new(batch.CronJob)
	case "networking.k8s.io/v1 NetworkPolicy":
		return new(networking.NetworkPolicy)
	case "policy/v1 PodDisruptionBudget":
		return new(policy.PodDisruptionBudget)
	}
	return nil
}

// Read reads all manifests of a folder's files. It returns the objects by file name.
func Read(folder string) (map[string][]any, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%d manifests in %s: %w", len(files), folder, err)
	}
	all := map[string][]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, doc := range bytes.Split(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n")) {
			object, err := read(doc)
			if err != nil {
				return nil, fmt.Errorf("%s, manifest %d: %w", filepath.Base(file), i, err)
			}
			if object != nil {
				all[filepath.Base(file)] = append(all[filepath.Base(file)], object)
			}
		}
	}
	return all, nil
}

func read(doc []byte) (any, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return nil, err
	}
	object := kinds(head.APIVersion, head.Kind)
	switch {
	case object != nil:
		return object, yaml.UnmarshalStrict(doc, object)
	case head.APIVersion == operators:
		return nil, nil
	}
	return nil, fmt.Errorf("nobody expects %s of %s", head.Kind, head.APIVersion)
}
