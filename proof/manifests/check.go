package manifests

import (
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Check reads the manifests of a folder and returns what is wrong with them, beyond their form: a pod
// that may do more than it needs, volumes and names that do not fit together, a selector that does not
// meet the pods that it is for.
func Check(folder string) error {
	all, err := Read(folder)
	if err != nil {
		return err
	}
	var faults []error
	for file, objects := range all {
		for _, fault := range check(objects) {
			faults = append(faults, fmt.Errorf("%s: %w", file, fault))
		}
	}
	return errors.Join(faults...)
}

// pod is a pod's template with the name of what makes it.
type pod struct {
	maker   string
	serves  bool
	labels  map[string]string
	spec    core.PodSpec
	claimed map[string]bool // volumes that the maker claims
}

func check(objects []any) (faults []error) {
	var pods []pod
	configs := map[string]bool{}
	for _, o := range objects {
		switch o := o.(type) {
		case *core.ConfigMap:
			configs[o.Name] = true
		case *apps.Deployment:
			pods = append(pods, pod{"Deployment " + o.Name, true, o.Spec.Template.Labels, o.Spec.Template.Spec, nil})
			faults = append(faults, meets(o.Spec.Selector, o.Spec.Template.Labels, "Deployment "+o.Name)...)
		case *apps.StatefulSet:
			p := pod{"StatefulSet " + o.Name, true, o.Spec.Template.Labels, o.Spec.Template.Spec, map[string]bool{}}
			for _, c := range o.Spec.VolumeClaimTemplates {
				p.claimed[c.Name] = true
			}
			pods = append(pods, p)
			faults = append(faults, meets(o.Spec.Selector, o.Spec.Template.Labels, "StatefulSet "+o.Name)...)
			if *o.Spec.Replicas != 1 {
				faults = append(faults, fmt.Errorf("%s: %d replicas on one folder", p.maker, *o.Spec.Replicas))
			}
		case *batch.Job:
			pods = append(pods, pod{"Job " + o.Name, false, o.Spec.Template.Labels, o.Spec.Template.Spec, nil})
		case *batch.CronJob:
			pods = append(pods, pod{"CronJob " + o.Name, false, o.Spec.JobTemplate.Spec.Template.Labels, o.Spec.JobTemplate.Spec.Template.Spec, nil})
			if o.Spec.Suspend == nil || !*o.Spec.Suspend {
				faults = append(faults, fmt.Errorf("CronJob %s runs by itself", o.Name))
			}
		}
	}
	for _, p := range pods {
		for _, fault := range p.check(configs) {
			faults = append(faults, fmt.Errorf("%s: %w", p.maker, fault))
		}
	}
	return append(faults, selects(objects, pods)...)
}

func meets(selector *meta.LabelSelector, on map[string]string, who string) []error {
	s, err := meta.LabelSelectorAsSelector(selector)
	if err == nil && !s.Matches(labels.Set(on)) {
		err = errors.New("its selector does not select its own pods")
	}
	if err != nil {
		return []error{fmt.Errorf("%s: %w", who, err)}
	}
	return nil
}

// selects checks that each service selects serving pods alone, and each port is one of theirs.
func selects(objects []any, pods []pod) (faults []error) {
	for _, o := range objects {
		service, is := o.(*core.Service)
		if !is {
			continue
		}
		met := 0
		for _, p := range pods {
			if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(p.labels)) {
				continue
			}
			met++
			if !p.serves {
				faults = append(faults, fmt.Errorf("Service %s sends requests to %s", service.Name, p.maker))
			}
			for _, port := range service.Spec.Ports {
				if !p.has(port.TargetPort.StrVal) {
					faults = append(faults, fmt.Errorf("Service %s: %s has no port %s", service.Name, p.maker, port.TargetPort.StrVal))
				}
			}
		}
		if met != 1 {
			faults = append(faults, fmt.Errorf("Service %s selects the pods of %d", service.Name, met))
		}
	}
	return faults
}

func (p pod) has(port string) bool {
	for _, c := range p.spec.Containers {
		for _, of := range c.Ports {
			if of.Name == port {
				return true
			}
		}
	}
	return false
}

// Seconds of a rolling stop: what a pod needs beyond the program's own grace.
const stopSpare = 5

func (p pod) check(configs map[string]bool) (faults []error) {
	say := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	of := p.spec.SecurityContext
	switch {
	case of == nil || of.RunAsNonRoot == nil || !*of.RunAsNonRoot || of.SeccompProfile == nil || of.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
		say("it may run as root, or call whatever the kernel has")
	case p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken:
		say("it has a token of the cluster's API, which it does not use")
	}
	volumes := map[string]bool{}
	for _, v := range p.spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && !configs[v.ConfigMap.Name] {
			say("the ConfigMap %s is not there", v.ConfigMap.Name)
		}
		if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o007 != 0) {
			say("everybody in the pod may read the Secret %s", v.Secret.SecretName)
		}
	}
	for _, c := range p.spec.Containers {
		if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			say("container %s may write to its root, or do more than it needs", c.Name)
		}
		if len(c.Env)+len(c.EnvFrom) > 0 {
			say("container %s has an environment", c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] && !p.claimed[m.Name] {
				say("container %s mounts %s, which is not there", c.Name, m.Name)
			}
		}
		if p.serves && (c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil || c.Resources.Limits.Memory().IsZero()) {
			say("container %s lacks a probe or a limit of memory", c.Name)
		}
	}
	if p.serves && (p.spec.TerminationGracePeriodSeconds == nil || *p.spec.TerminationGracePeriodSeconds < 20+stopSpare) {
		say("it is killed before its shutdown ends")
	}
	return faults
}
