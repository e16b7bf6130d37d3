package commands

import "github.com/tempo-watchtower/watchtower/domain/delivery/group"

// Groups handles the commands of domain/delivery/group.
type Groups = Handler[group.State, group.Command, group.Event]
