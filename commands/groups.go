package commands

import (
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Groups handles the commands of domain/delivery/group.
type Groups = handler.Handler[group.State, group.Command, group.Event]
