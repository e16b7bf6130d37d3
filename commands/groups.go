package commands

import "github.com/tempo-watchtower/watchtower/domain/group"

// Groups handles the commands of domain/group.
type Groups = Handler[group.State, group.Command, group.Event]
