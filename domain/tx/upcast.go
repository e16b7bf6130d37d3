package tx

import "time"

// canceledV1 is from when only a transaction without a verdict could be canceled.
type canceledV1 struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (e canceledV1) up() Event { return CanceledLocally{Reason: e.Reason, At: e.At} }
