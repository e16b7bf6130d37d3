// Package v36 reads the manifests of the chart with the types of Kubernetes 1.36.
package v36
