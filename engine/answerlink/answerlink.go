// Package answerlink creates and verifies the tokens of links that answer a question from a notification. A
// token consists of a claim (thread, head, expiry, nonce) and its HMAC-SHA256 under a key of the home. Its
// holder can answer this question once, and nothing else.
package answerlink

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Claim describes what a link permits.
type Claim struct {
	Thread string        `json:"t"`
	Head   protocol.Hash `json:"h"` // head at which the question is asked
	Ends   int64         `json:"e"` // Unix milliseconds
	Nonce  string        `json:"n"` // identifies the link once it is used
}

// Reasons why a link is invalid.
var (
	ErrForged = errors.New("invalid link")
	ErrLate   = errors.New("this link has expired")
	ErrUsed   = errors.New("this link was already used; each link works once")
)

// Links manages the answer links of a home. The directory need not exist.
type Links struct{ Dir string }

const (
	keyBytes   = 32
	nonceBytes = 16
	longest    = 4 << 10
)

// New creates the token of a link.
func (l Links) New(ctx context.Context, random io.Reader, thread string, head protocol.Hash,
	ends time.Time) (string, error) {
	key, err := l.key(ctx, random)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, nonceBytes)
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", fmt.Errorf("create answer link: %w", err)
	}
	claim, err := json.Marshal(Claim{Thread: thread, Head: head, Ends: ends.UnixMilli(), Nonce: encode(nonce)})
	if err != nil {
		return "", fmt.Errorf("create answer link: %w", err)
	}
	return encode(claim) + "." + encode(sign(key, claim)), nil
}

// Check verifies a token and returns its claim. The error is [ErrForged], [ErrLate] or [ErrUsed].
func (l Links) Check(word string, now time.Time) (Claim, error) {
	var c Claim
	key, err := safeopen.ReadFile(l.keyFile(), keyBytes, safeopen.NoFollow)
	if err != nil || len(key) != keyBytes || len(word) > longest {
		return c, ErrForged // without a key, no link was ever created
	}
	text, signature, _ := strings.Cut(word, ".")
	claim, err := decode(text)
	if err != nil {
		return c, ErrForged
	}
	given, err := decode(signature)
	if err != nil || !hmac.Equal(given, sign(key, claim)) {
		return c, ErrForged
	}
	if err := json.Unmarshal(claim, &c); err != nil {
		return Claim{}, ErrForged
	}
	if now.UnixMilli() >= c.Ends {
		return c, ErrLate
	}
	if _, err := os.Lstat(l.usedFile(c)); err == nil {
		return c, ErrUsed
	}
	return c, nil
}

// Use marks a link as used. It succeeds for one caller only; a concurrent one gets [ErrUsed]. It also removes
// the marks of expired links.
func (l Links) Use(c Claim, now time.Time) error {
	l.sweep(now)
	if err := os.MkdirAll(filepath.Dir(l.usedFile(c)), 0o700); err != nil {
		return fmt.Errorf("use answer link: %w", err)
	}
	f, err := safeopen.OpenFile(l.usedFile(c), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600, safeopen.NoFollow)
	if errors.Is(err, fs.ErrExist) {
		return ErrUsed
	}
	if err != nil {
		return fmt.Errorf("use answer link: %w", err)
	}
	// The link must stay used after a power failure.
	return errors.Join(f.Sync(), f.Close(), durable.OS().SyncDir(filepath.Dir(l.usedFile(c))))
}

// Unuse removes the mark if the answer was not accepted.
func (l Links) Unuse(c Claim) error { return os.Remove(l.usedFile(c)) }

// sweep removes the marks of expired links, which are rejected anyway.
func (l Links) sweep(now time.Time) {
	dir := filepath.Join(l.Dir, "used")
	entries, _ := os.ReadDir(dir) // the directory may not exist
	for _, entry := range entries {
		ends, _, _ := strings.Cut(entry.Name(), "-")
		if ms, err := strconv.ParseInt(ends, 10, 64); err == nil && ms < now.UnixMilli() {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // on failure, the next sweep removes it
		}
	}
}

func (l Links) keyFile() string { return filepath.Join(l.Dir, "key") }

func (l Links) usedFile(c Claim) string {
	return filepath.Join(l.Dir, "used", strconv.FormatInt(c.Ends, 10)+"-"+c.Nonce)
}

// key returns the home's key, and creates it on first use. If two processes create one at once, the first one
// wins.
func (l Links) key(ctx context.Context, random io.Reader) ([]byte, error) {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the key for answer links: %w", err)
	}
	lock, err := durable.Lock(ctx, filepath.Join(l.Dir, "key.lock"))
	if err != nil {
		return nil, fmt.Errorf("create the key for answer links: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // also released when the process ends
	key, err := safeopen.ReadFile(l.keyFile(), keyBytes, safeopen.NoFollow)
	if err == nil && len(key) == keyBytes {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key for answer links: %w", err)
	}
	key = make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("create the key for answer links: %w", err)
	}
	return key, durable.WriteFile(durable.OS(), l.keyFile(), key, 0o600)
}

func sign(key, claim []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("uwf answer link 1\n"))
	mac.Write(claim)
	return mac.Sum(nil)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func decode(text string) ([]byte, error) { return base64.RawURLEncoding.Strict().DecodeString(text) }
