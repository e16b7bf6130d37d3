package tx

import "time"

// canceledV1 is the shape from before transactions with a verdict could be canceled.
type canceledV1 struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (e canceledV1) up() Event { return CanceledLocally{Reason: e.Reason, At: e.At} }
