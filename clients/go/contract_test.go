package watchtower

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// deliveryTypes and relayTypes are the Go types of the contracts' schemas. Nil: there is none,
// because the client hides it or passes it on as text.
var deliveryTypes = map[string]reflect.Type{
	"Taken": reflect.TypeFor[Result](), "Validated": reflect.TypeFor[Result](), "Refused": reflect.TypeFor[Result](),
	"Waited": reflect.TypeFor[Waited](), "Problem": reflect.TypeFor[Problem](), "Transaction": reflect.TypeFor[Transaction](),
	"ListedGroup": reflect.TypeFor[Group](), "Group": reflect.TypeFor[GroupPlan](), "GroupMember": reflect.TypeFor[Member](),
	"CancelPlan": reflect.TypeFor[Invalidation](), "GroupPending": reflect.TypeFor[GroupPending](), "NonceKeyInfo": reflect.TypeFor[NonceKeyInfo](),
	"Outcome": reflect.TypeFor[Outcome](), "Attempt": reflect.TypeFor[Attempt](), "Answer": reflect.TypeFor[Answer](),
	"Block": reflect.TypeFor[Block](), "Receipt": reflect.TypeFor[Receipt](), "Fees": reflect.TypeFor[Fees](), "Call": reflect.TypeFor[Call](),
	"CanceledGroup": reflect.TypeFor[CanceledGroup](), "CanceledMember": reflect.TypeFor[CanceledMember](),
	"FollowedEvent": reflect.TypeFor[Event](), "TransactionState": reflect.TypeFor[TransactionState](), "StateBlock": reflect.TypeFor[StateBlock](), "Event": reflect.TypeFor[Event](), "Meta": reflect.TypeFor[Meta](),
	"Health": reflect.TypeFor[Health](), "Dependency": reflect.TypeFor[Dependency](), "Endpoint": reflect.TypeFor[Endpoint](),
	"Head": reflect.TypeFor[Head](), "Reader": reflect.TypeFor[Reader](), "RpcAnswer": reflect.TypeFor[RPCAnswer](), "RpcError": reflect.TypeFor[RPCError](),
	// Requests, pages and probes, which the methods write and read themselves.
	"Fault": reflect.TypeFor[Fault](), "ProblemKind": reflect.TypeFor[ProblemKind](), "GroupsPage": nil, "Submission": nil, "Results": nil, "Page": nil, "TypedCancel": nil, "Trail": nil, "Mark": nil, "Contract": nil, "Probe": nil, "RpcCall": nil,
}

var relayTypes = map[string]reflect.Type{
	"Request": reflect.TypeFor[IntentRequest](), "Call": reflect.TypeFor[IntentCall](), "Gas": reflect.TypeFor[IntentGas](),
	"NonceKey": reflect.TypeFor[IntentNonceKey](), "Intent": reflect.TypeFor[Intent](), "Place": reflect.TypeFor[Place](),
	"Attempt": reflect.TypeFor[IntentAttempt](), "Block": reflect.TypeFor[Block](), "Receipt": reflect.TypeFor[IntentReceipt](),
	"Stopping": reflect.TypeFor[Stopping](), "WaitingFor": reflect.TypeFor[WaitingFor](), "Outcome": reflect.TypeFor[IntentOutcome](),
	"Waited": reflect.TypeFor[Waited](), "Event": reflect.TypeFor[IntentEvent](), "StreamedEvent": reflect.TypeFor[IntentEvent](), "Webhook": reflect.TypeFor[Webhook](), "Tried": reflect.TypeFor[TriedWebhook](),
	"Problem": reflect.TypeFor[Problem](), "Taken": reflect.TypeFor[IntentResult](), "Refused": reflect.TypeFor[IntentResult](),
	"Message": reflect.TypeFor[IntentEvent](), "MessageRequest": reflect.TypeFor[MessageRequest](), "MessageCall": reflect.TypeFor[MessageCall](),
	"MessageState": reflect.TypeFor[MessageState](), "MessageReceipt": reflect.TypeFor[MessageReceipt](),
	"Signers": reflect.TypeFor[Signers](), "Signer": reflect.TypeFor[Signer](), "SignerOnChain": reflect.TypeFor[SignerOnChain](),
	"LastError": reflect.TypeFor[OperatorError](), "Lane": reflect.TypeFor[Lane](), "Lanes": nil, "Diagnosis": nil,
	"Fault": reflect.TypeFor[Fault](), "ProblemKind": reflect.TypeFor[ProblemKind](), "Contract": nil,
	"RpcAnswer": reflect.TypeFor[RPCAnswer](), "RpcError": reflect.TypeFor[RPCError](), "RpcCall": nil,
	"Cancel": nil, "SpeedUp": nil, "Results": nil, "Page": nil, "Trail": nil, "GivenURL": nil, "WebhooksPage": nil, "DeadPage": nil, "Redelivery": nil, "Mark": nil,
}

// hidden are members of a contract that a Go type does not have.
var hidden = map[string]string{
	"RpcAnswer.jsonrpc": "always 2.0", "RpcAnswer.id": "answers are in the order of the calls",
	"Group.nextCursor": "Group returns all members", "Group.hasMore": "Group returns all members",
}

// schema is the part of an OpenAPI schema that determines a Go type.
type schema struct {
	Type       any
	Ref        string `yaml:"$ref"`
	Properties map[string]schema
	Items      *schema
	Enum       []any
	Const      any
	OneOf      []schema `yaml:"oneOf"`
	AllOf      []schema `yaml:"allOf"`
}

// Every member of every schema is in the Go type of that schema, with a fitting kind. So the
// types are the contracts', without a generator: they have names and comments for Go.
func TestTypesAreTheContract(t *testing.T) {
	for path, types := range map[string]map[string]reflect.Type{"../../api/openapi.yaml": deliveryTypes, "../../api/relay/openapi.yaml": relayTypes} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Components struct{ Schemas map[string]schema }
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		c := contract{t: t, schemas: doc.Components.Schemas}
		for name, s := range c.schemas {
			goType, known := types[name]
			switch {
			case len(s.Properties) == 0:
			case !known:
				t.Errorf("%s: schema %s has no Go type", path, name)
			case goType != nil:
				c.compare(path+": "+name, name, s, goType)
			}
		}
		for name := range types {
			if _, is := c.schemas[name]; !is {
				t.Errorf("%s has no schema %s", path, name)
			}
		}
	}
}

type contract struct {
	t       *testing.T
	schemas map[string]schema
}

// compare checks that a struct has every member of an object.
func (c contract) compare(where, name string, s schema, goType reflect.Type) {
	fields := fieldsOf(goType)
	for property, of := range s.Properties {
		if _, ok := hidden[name+"."+property]; ok {
			continue
		}
		field, ok := fields[property]
		if !ok {
			c.t.Errorf("%s.%s is not in %s", where, property, goType)
			continue
		}
		c.fits(fmt.Sprintf("%s.%s (%s.%s)", where, property, goType, field.Name), of, field.Type)
	}
}

// fits checks that a type can hold the values of a schema.
func (c contract) fits(where string, s schema, goType reflect.Type) {
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if goType == reflect.TypeFor[Milestone]() || goType.PkgPath() == "encoding/json" || goType == reflect.TypeFor[ChainID]() || goType.PkgPath() == "time" {
		return // texts, raw JSON, either of both, and times in RFC 3339
	}
	s = c.resolved(s)
	switch kind := kindOf(s); kind {
	case "string":
		c.kind(where, kind, goType, reflect.String)
	case "boolean":
		c.kind(where, kind, goType, reflect.Bool)
	case "integer":
		c.kind(where, kind, goType, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8)
	case "number":
		c.kind(where, kind, goType, reflect.Float64)
	case "array":
		if c.kind(where, kind, goType, reflect.Slice) && s.Items != nil {
			c.fits(where+"[]", *s.Items, goType.Elem())
		}
	case "object":
		if len(s.Properties) > 0 && goType.Kind() != reflect.Map && c.kind(where, kind, goType, reflect.Struct) {
			c.compare(where, "", s, goType)
		}
	default:
		c.t.Errorf("%s: a schema of no known kind: %+v", where, s)
	}
}

func (c contract) kind(where, kind string, goType reflect.Type, want ...reflect.Kind) bool {
	if slices.Contains(want, goType.Kind()) {
		return true
	}
	c.t.Errorf("%s: %s cannot hold a value of the kind %s", where, goType, kind)
	return false
}

// resolved follows references, and takes the part of a union that is not null.
func (c contract) resolved(s schema) schema {
	for {
		switch {
		case s.Ref != "":
			s = c.schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		case len(s.AllOf) > 0:
			s = s.AllOf[0]
		case len(s.OneOf) > 0:
			s = s.OneOf[0]
		default:
			return s
		}
	}
}

func kindOf(s schema) string {
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []any: // with null
		return fmt.Sprint(kind[0])
	}
	value := s.Const
	if len(s.Enum) > 0 {
		value = cmp.Or(s.Enum[0], value)
	}
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case uint64, int64, int:
		return "integer"
	}
	return "object"
}

// fieldsOf are the members of a struct's JSON, with the members of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = f
		}
	}
	return fields
}
