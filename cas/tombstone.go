package cas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Tombstone stands under the hash of a node whose content was taken away on
// purpose. What it says is a claim: no hash covers it, and anyone who can write
// to a store can make one. A seal that was noted before proves it, because the
// seal of whatever leads here is made from Seal ([SealOf]).
type Tombstone struct {
	Hash   Hash
	Type   Hash   // that the node had
	Reason string // why; may be empty
	Seal   Seal   // of the node as it was; none if that could not be told
	At     int64  // ms, when it was redacted
	// Foreign: an import brought it, so it was not made here. Whole content takes its
	// place when it is put, since anybody can make a tombstone. Only the file in a store
	// says so: a bundle's does not.
	Foreign bool
}

// RedactedError means that a node was redacted: its content is neither lost nor
// damaged, but gone on purpose.
type RedactedError struct{ Tombstone Tombstone }

// Error implements error.
func (e *RedactedError) Error() string {
	return fmt.Sprintf("node %s is %s", e.Tombstone.Hash, e.Tombstone.mark())
}

// Mark is what readers show in the place of the content.
func (e *RedactedError) Mark() string { return "[" + e.Tombstone.mark() + "]" }

// Value is what readers of JSON show in the place of the content.
func (e *RedactedError) Value() map[string]any {
	return map[string]any{"$redacted": string(e.Tombstone.Hash), "reason": e.Tombstone.Reason}
}

func (t Tombstone) mark() string {
	if t.Reason == "" {
		return "redacted"
	}
	return "redacted: " + plaintext.Line(t.Reason) // which anyone may have written
}

// AsRedacted finds the tombstone that an error is about.
func AsRedacted(err error) (*RedactedError, bool) {
	var redacted *RedactedError
	ok := errors.As(err, &redacted)
	return redacted, ok
}

// A tombstone's file is one canonical CBOR map; the digest is the SHA-256 of the
// same map without it, so that damage is found:
//
//	{uwf: "tombstone", hash, seal, type, digest, reason, foreign?: true, version: 1, timestamp}
const (
	tombstoneHead    = "\x63uwf\x69tombstone" // behind the byte that says how many fields there are
	tombstoneVersion = 1

	// MaxReason bounds the reason of a tombstone, in bytes.
	MaxReason = 4096
)

// IsTombstone reports whether a node's file is a tombstone, whole or not.
func IsTombstone(file []byte) bool {
	return len(file) > 0 && (file[0] == 0xa8 || file[0] == 0xa9) && bytes.HasPrefix(file[1:], []byte(tombstoneHead))
}

// MaxTombstone bounds the file of a tombstone, in bytes.
const MaxTombstone = MaxReason + 512

// MarshalTombstone is the content of a tombstone's file. Errors: a reason that
// is too long or not UTF-8.
func MarshalTombstone(t Tombstone) ([]byte, error) {
	if len(t.Reason) > MaxReason {
		return nil, fmt.Errorf("the reason has %d bytes, at most %d are allowed", len(t.Reason), MaxReason)
	}
	fields := map[string]any{
		"uwf": "tombstone", "hash": string(t.Hash), "seal": t.Seal.String(), "type": string(t.Type),
		"reason": t.Reason, "version": tombstoneVersion, "timestamp": t.At,
	}
	if t.Foreign {
		fields["foreign"] = true
	}
	undigested, err := Encode(fields)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(undigested)
	fields["digest"] = hex.EncodeToString(digest[:])
	return Encode(fields)
}

// UnmarshalTombstone reads the tombstone of node h. The error is a
// [*CorruptError] without a path.
func UnmarshalTombstone(h Hash, file []byte) (Tombstone, error) {
	t, err := parseTombstone(file)
	if err == nil && t.Hash != h {
		err = fmt.Errorf("it is that of %s", t.Hash)
	}
	if err != nil {
		return Tombstone{}, &CorruptError{Hash: h, Reason: "its tombstone is damaged: " + err.Error()}
	}
	return t, nil
}

func parseTombstone(file []byte) (Tombstone, error) {
	var fields struct {
		Hash      Hash   `json:"hash"`
		Type      Hash   `json:"type"`
		Seal      string `json:"seal"`
		Reason    string `json:"reason"`
		Version   int    `json:"version"`
		Timestamp int64  `json:"timestamp"`
		Foreign   bool   `json:"foreign"`
	}
	if err := decodeInto(file, &fields); err != nil {
		return Tombstone{}, err
	}
	if fields.Version != tombstoneVersion {
		return Tombstone{}, fmt.Errorf("version %d: a newer program made it", fields.Version)
	}
	t := Tombstone{Hash: fields.Hash, Type: fields.Type, Reason: fields.Reason, At: fields.Timestamp, Foreign: fields.Foreign}
	if fields.Seal != "" {
		seal, err := ParseSeal(fields.Seal)
		if err != nil {
			return Tombstone{}, err
		}
		t.Seal = seal
	}
	if !t.Hash.Valid() || !t.Type.Valid() || t.At < 0 || t.At > maxSafe {
		return Tombstone{}, errors.New("a field is out of range")
	}
	// One tombstone has one form: whatever differs is damage, the digest included.
	again, err := MarshalTombstone(t)
	if err != nil {
		return Tombstone{}, err
	}
	if !bytes.Equal(again, file) {
		return Tombstone{}, errors.New("its digest does not fit")
	}
	return t, nil
}

// CleanReason makes a reason fit for a tombstone and for one line.
func CleanReason(reason string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(reason, "\uFFFD")), " ")
}
