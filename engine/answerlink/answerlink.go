// Package answerlink makes and checks the words by which a question is answered from a
// notice: a claim (which thread, at which head, until when, a name of its own) and its
// HMAC-SHA256 under a key of the home. Whoever has the word can answer this question
// once, and nothing else.
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

// Claim is what a link allows.
type Claim struct {
	Thread string        `json:"t"`
	Head   protocol.Hash `json:"h"` // at which the question is asked
	Ends   int64         `json:"e"` // ms
	Nonce  string        `json:"n"` // by which it is known that the link was used
}

// Why a link does not count.
var (
	ErrForged = errors.New("this link was not made here")
	ErrLate   = errors.New("this link has ended")
	ErrUsed   = errors.New("this link was used: it answers once")
)

// Links are those of a home; the directory need not exist.
type Links struct{ Dir string }

const (
	keyBytes   = 32
	nonceBytes = 16
	longest    = 4 << 10
)

// New makes a link's word.
func (l Links) New(ctx context.Context, random io.Reader, thread string, head protocol.Hash,
	ends time.Time) (string, error) {
	key, err := l.key(ctx, random)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, nonceBytes)
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", fmt.Errorf("make an answer link: %w", err)
	}
	claim, err := json.Marshal(Claim{Thread: thread, Head: head, Ends: ends.UnixMilli(), Nonce: encode(nonce)})
	if err != nil {
		return "", fmt.Errorf("make an answer link: %w", err)
	}
	return encode(claim) + "." + encode(sign(key, claim)), nil
}

// Check returns what a word allows. The error is [ErrForged], [ErrLate] or [ErrUsed].
func (l Links) Check(word string, now time.Time) (Claim, error) {
	var c Claim
	key, err := safeopen.ReadFile(l.keyFile(), keyBytes, safeopen.NoFollow)
	if err != nil || len(key) != keyBytes || len(word) > longest {
		return c, ErrForged // without a key no link was made
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

// Use marks a link as used, for one caller only: of two at once one gets [ErrUsed].
// Marks of links that have ended are swept.
func (l Links) Use(c Claim, now time.Time) error {
	l.sweep(now)
	if err := os.MkdirAll(filepath.Dir(l.usedFile(c)), 0o700); err != nil {
		return fmt.Errorf("use an answer link: %w", err)
	}
	f, err := safeopen.OpenFile(l.usedFile(c), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600, safeopen.NoFollow)
	if errors.Is(err, fs.ErrExist) {
		return ErrUsed
	}
	if err != nil {
		return fmt.Errorf("use an answer link: %w", err)
	}
	// It must not count again after a power cut.
	return errors.Join(f.Sync(), f.Close(), durable.OS().SyncDir(filepath.Dir(l.usedFile(c))))
}

// Unuse takes the mark back: the answer was none.
func (l Links) Unuse(c Claim) error { return os.Remove(l.usedFile(c)) }

// sweep removes marks of links that are refused as late anyway.
func (l Links) sweep(now time.Time) {
	dir := filepath.Join(l.Dir, "used")
	entries, _ := os.ReadDir(dir) // there may be none
	for _, entry := range entries {
		ends, _, _ := strings.Cut(entry.Name(), "-")
		if ms, err := strconv.ParseInt(ends, 10, 64); err == nil && ms < now.UnixMilli() {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // otherwise the next one does
		}
	}
}

func (l Links) keyFile() string { return filepath.Join(l.Dir, "key") }

func (l Links) usedFile(c Claim) string {
	return filepath.Join(l.Dir, "used", strconv.FormatInt(c.Ends, 10)+"-"+c.Nonce)
}

// key is the home's, made when it is first needed. Of two processes that make one at
// once, the first one's counts.
func (l Links) key(ctx context.Context, random io.Reader) ([]byte, error) {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the key of answer links: %w", err)
	}
	lock, err := durable.Lock(ctx, filepath.Join(l.Dir, "key.lock"))
	if err != nil {
		return nil, fmt.Errorf("make the key of answer links: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // the end of the process gives it back, too
	key, err := safeopen.ReadFile(l.keyFile(), keyBytes, safeopen.NoFollow)
	if err == nil && len(key) == keyBytes {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of answer links: %w", err)
	}
	key = make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("make the key of answer links: %w", err)
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
