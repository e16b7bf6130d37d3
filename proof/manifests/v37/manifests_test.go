package v37

import (
	"testing"

	// The types of this Kubernetes, in place of the older ones that package manifests requires.
	_ "k8s.io/api/core/v1"

	"github.com/tempo-watchtower/watchtower/proof/manifests"
)

func TestManifests(t *testing.T) {
	if err := manifests.Check("../../chart/testdata/manifests"); err != nil {
		t.Error(err)
	}
}
