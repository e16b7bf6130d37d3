// Package v37 reads the manifests of the chart with the types of Kubernetes 1.37.
package v37
