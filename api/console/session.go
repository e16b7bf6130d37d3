package console

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

const (
	// SecretBytes is the length of [Config.Secret].
	SecretBytes = 32
	// sessionLife is how long a session lasts: a working day.
	sessionLife = 8 * time.Hour
	cookieName  = "watchtower_console"
)

func itoa(n int) string { return strconv.Itoa(n) }

// on is a session, as its cookie has it.
type on struct {
	key access.KeyID
	id  access.SessionID
	end time.Time // whole seconds
}

// seal encrypts and authenticates cookies, so that only this deployment can make one.
type seal struct{ cipher.AEAD }

func newSeal(secret []byte) seal {
	if len(secret) != SecretBytes {
		panic("console: the secret has another length")
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(fmt.Sprintf("console: %v", err))
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(fmt.Sprintf("console: %v", err))
	}
	return seal{aead}
}

const plainBytes = len(access.KeyID{}) + len(access.SessionID{}) + 8

func (s seal) close(o on) string {
	plain := append(o.key[:], o.id[:]...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(o.end.Unix()))
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, plain, []byte(cookieName)))
}

func (s seal) open(text string) (o on, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return o, false
	}
	plain, err := s.Open(nil, nil, sealed, []byte(cookieName))
	if err != nil || len(plain) != plainBytes {
		return o, false
	}
	n := copy(o.key[:], plain)
	n += copy(o.id[:], plain[n:])
	o.end = time.Unix(int64(binary.BigEndian.Uint64(plain[n:])), 0)
	return o, true
}

// cookie returns the request's session, if it is in force: not over, not ended, and its key is in force and
// may read everything.
func (k *console) cookie(r *http.Request) (on, bool) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return on{}, false
	}
	o, ok := k.seal.open(c.Value)
	if !ok || !k.Now().Before(o.end) {
		return on{}, false
	}
	keys := k.API.Access.Current()
	if _, ended := keys.Ended[o.id]; ended {
		return on{}, false
	}
	entry, known := keys.Keys[o.key]
	if !known || !entry.InForce(k.Now()) || !opens(entry.Key) {
		return on{}, false
	}
	return o, true
}

// opens reports whether a key may sign in: it reads everything, and no sender binds it.
func opens(key access.Key) bool { return key.Opens(access.Audit) && len(key.Senders) == 0 }

// sessionShown is what the pages know about their session.
type sessionShown struct {
	Program Program        `json:"program"`
	Parts   []string       `json:"parts"`
	Signed  bool           `json:"signed"`
	Keyless bool           `json:"keyless"`
	Key     string         `json:"key,omitempty"` // its name
	Scopes  []access.Scope `json:"scopes,omitempty"`
	Acts    bool           `json:"acts"` // it may send commands
	Ends    int64          `json:"ends,omitempty"`
	Now     int64          `json:"now"`
}

func (k *console) shown(o on, signed bool) sessionShown {
	s := sessionShown{Program: k.Program, Signed: signed, Keyless: k.keyless(), Now: k.Now().Unix()}
	for _, name := range []string{"delivery", "relay", "operate"} {
		if k.Parts[name] != nil {
			s.Parts = append(s.Parts, name)
		}
	}
	s.Acts = s.Keyless
	if signed {
		key := k.API.Access.Current().Keys[o.key].Key
		s.Key, s.Scopes, s.Ends, s.Acts = key.Name, key.Scopes, o.end.Unix(), key.May(access.Admin)
	}
	return s
}

// session answers GET /console/session: who is signed in.
func (k *console) session(r rest.Request) error {
	o, signed := k.cookie(r.Request)
	return r.Reply(http.StatusOK, k.shown(o, signed))
}

// signIn answers POST /console/session: the key in the request's header begins a session.
func (k *console) signIn(r rest.Request) error {
	key, has := r.Key()
	if !has {
		return rest.ErrUnauthorized.Because("send the key in Authorization")
	}
	if !opens(key) {
		return rest.ErrForbidden.Because("the console needs a key with the scope audit or admin that no sender binds")
	}
	o := on{key: key.ID, end: time.Unix(k.Now().Add(sessionLife).Unix(), 0)}
	if _, err := io.ReadFull(k.Random, o.id[:]); err != nil {
		panic(fmt.Sprintf("console: draw a session id: %v", err))
	}
	http.SetCookie(r.Writer(), cookieOf(r.Request, k.seal.close(o), int(sessionLife/time.Second)))
	return r.Reply(http.StatusOK, k.shown(o, true))
}

// signOut answers DELETE /console/session: the session ends at every replica.
func (k *console) signOut(r rest.Request) error {
	if o, signed := k.cookie(r.Request); signed {
		ctx, cancel := r.Work()
		defer cancel()
		if err := k.Keys.EndSession(ctx, access.SessionEnded{ID: o.id, Key: o.key, Until: o.end}, r.Meta()); err != nil {
			return err
		}
	}
	http.SetCookie(r.Writer(), cookieOf(r.Request, "", -1))
	r.Writer().WriteHeader(http.StatusNoContent)
	return nil
}

// cookieOf is the session's cookie. Without a path it belongs to the console's own, whatever path a proxy in
// front has.
func cookieOf(r *http.Request, value string, life int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, MaxAge: life, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}
