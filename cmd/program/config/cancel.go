package config

import (
	"fmt"
	"strings"
)

// Cancel configures how owners may cancel their groups.
type Cancel struct {
	// GroupIDSignatures accepts signatures over a group's id alone.
	GroupIDSignatures bool
}

const deploymentMax = 64

func (d *draft) canceling() []*setting {
	return []*setting{
		{
			path: "deployment", kind: text, absent: "16 hex digits that are derived from the vault's key",
			allowed: fmt.Sprintf("1 to %d of `A-Z a-z 0-9 . _ -`", deploymentMax),
			doc: "The name of this deployment in the typed data by which owners cancel groups: a signature for one deployment does not count in another. " +
				"`/health` shows the name.",
			show: func() string { return d.Deployment },
			read: func(text string) error {
				strange := strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != ""
				if text == "" || len(text) > deploymentMax || strange {
					return fmt.Errorf("%s is not 1 to %d letters, digits, dots, underscores and hyphens", quote(text), deploymentMax)
				}
				d.Deployment = text
				return nil
			},
		},
		toggles("cancel.group-id-signatures", &d.Cancel.GroupIDSignatures, true,
			"Whether a signature over a group's id cancels the group. It counts once for a group, but names no deployment: anybody who has seen it can use it at another deployment. Switch it off where one sender has the same groups at several deployments."),
	}
}
