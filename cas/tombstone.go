package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Tombstone replaces the content of a redacted node under its hash. Its content is a claim: no hash covers
// it, and anyone who can write to a store can create one. A seal that was recorded earlier proves it, because
// the seals of all nodes above are computed from Seal ([SealOf]).
type Tombstone struct {
	Hash   Hash
	Type   Hash   // type of the node
	Reason string // can be empty
	Seal   Seal   // of the original node; zero if unknown
	At     int64  // time of the redaction in ms
	// Foreign means that the tombstone was imported. Because anyone can create a tombstone, a put of the
	// original content replaces it. Only the file in a store records this, not that in a bundle.
	Foreign bool
}

// RedactedError means that a node's content was removed intentionally; it is neither lost nor damaged.
type RedactedError struct{ Tombstone Tombstone }

func (e *RedactedError) Error() string {
	return fmt.Sprintf("node %s is %s", e.Tombstone.Hash, e.Tombstone.mark())
}

// Mark returns the text to show in place of the content.
func (e *RedactedError) Mark() string { return "[" + e.Tombstone.mark() + "]" }

// Value returns the JSON value to show in place of the content.
func (e *RedactedError) Value() map[string]any {
	return map[string]any{"$redacted": string(e.Tombstone.Hash), "reason": e.Tombstone.Reason}
}

func (t Tombstone) mark() string {
	if t.Reason == "" {
		return "redacted"
	}
	return "redacted: " + plaintext.Line(t.Reason) // untrusted
}

// AsRedacted returns the RedactedError in an error.
func AsRedacted(err error) (*RedactedError, bool) {
	var redacted *RedactedError
	ok := errors.As(err, &redacted)
	return redacted, ok
}

// A tombstone's file is one canonical CBOR map. The digest, which detects damage, is the SHA-256 of the same
// map without it:
//
//	{uwf: "tombstone", hash, seal, type, digest, reason, foreign?: true, version: 1, timestamp}
const (
	tombstoneHead    = "\x63uwf\x69tombstone" // after the byte with the number of fields
	tombstoneVersion = 1

	// MaxReason bounds the reason of a tombstone, in bytes.
	MaxReason = 4096
)

// IsTombstone reports whether a node's file is a tombstone, possibly damaged.
func IsTombstone(file []byte) bool {
	return len(file) > 0 && (file[0] == 0xa8 || file[0] == 0xa9) && bytes.HasPrefix(file[1:], []byte(tombstoneHead))
}

// MaxTombstone bounds the file of a tombstone, in bytes.
const MaxTombstone = MaxReason + 512

// MarshalTombstone returns the content of a tombstone's file. It returns an error if the reason is too long
// or invalid UTF-8.
func MarshalTombstone(t Tombstone) ([]byte, error) {
	if len(t.Reason) > MaxReason {
		return nil, fmt.Errorf("the reason has %d bytes; the limit is %d", len(t.Reason), MaxReason)
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

// UnmarshalTombstone parses the tombstone of node h. The error is a [*CorruptError] without a path.
func UnmarshalTombstone(h Hash, file []byte) (Tombstone, error) {
	t, err := parseTombstone(file)
	if err == nil && t.Hash != h {
		err = fmt.Errorf("it belongs to %s", t.Hash)
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
		return Tombstone{}, fmt.Errorf("version %d is not supported; a newer program made it", fields.Version)
	}
	t := Tombstone{Hash: fields.Hash, Type: fields.Type, Reason: fields.Reason, At: fields.Timestamp,
		Foreign: fields.Foreign}
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
	// A tombstone has exactly one form, so any difference, including the digest, is damage.
	again, err := MarshalTombstone(t)
	if err != nil {
		return Tombstone{}, err
	}
	if !bytes.Equal(again, file) {
		return Tombstone{}, errors.New("digest mismatch")
	}
	return t, nil
}

// CleanReason makes a reason fit for a tombstone and for one line.
func CleanReason(reason string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(reason, "\uFFFD")), " ")
}

// Seal is a SHA-256 of a node and everything it references, types included. A node's hash detects damage; a
// seal also resists someone who constructs a collision. The zero Seal means none.
type Seal [sha256.Size]byte

// sealPrefix separates seals from other uses of SHA-256.
const sealPrefix = "uwf seal 1\n"

// SealOf returns the seal of a node. below contains the seals of what it needs, in order: its type, unless it
// is its own, then its refs ([Refs]).
//
//	SHA-256( "uwf seal 1\n" ‖ ascii(type) ‖ length of payload, 8 bytes, big endian ‖ payload ‖ below )
func SealOf(n Node, below []Seal) Seal {
	h := sha256.New()
	_, _ = h.Write([]byte(sealPrefix))
	_, _ = h.Write([]byte(n.Type))
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(n.Payload))))
	_, _ = h.Write(n.Payload)
	for _, s := range below {
		_, _ = h.Write(s[:])
	}
	return Seal(h.Sum(nil))
}

// ParseSeal parses the result of [Seal.String], in either case.
func ParseSeal(text string) (Seal, error) {
	b, err := hex.DecodeString(strings.ToLower(text))
	if err != nil || len(b) != sha256.Size {
		return Seal{}, fmt.Errorf("%q is not a seal: want %d hexadecimal digits", text, 2*sha256.Size)
	}
	return Seal(b), nil
}

// String returns the seal as 64 hexadecimal digits, "" for none.
func (s Seal) String() string {
	if s.IsZero() {
		return ""
	}
	return hex.EncodeToString(s[:])
}

// IsZero reports whether s is none.
func (s Seal) IsZero() bool { return s == Seal{} }

// MarshalText implements encoding.TextMarshaler.
func (s Seal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SealError means that a node, or something it references, differs from what was sealed. Got is zero if the
// content could not be sealed.
type SealError struct {
	Hash      Hash
	Want, Got Seal
	Path      string // of the seal's file, if any
}

func (e *SealError) Error() string {
	where := ""
	if e.Path != "" {
		where = " (" + e.Path + ")"
	}
	if e.Got.IsZero() {
		return fmt.Sprintf("the seal of node %s is damaged%s", e.Hash, where)
	}
	return fmt.Sprintf("node %s differs from its sealed content: its seal is %s, its content has %s%s", e.Hash, e.Want, e.Got,
		where)
}

// Verify reads a node and checks its hash, that its type exists, and that it matches it. It returns the
// errors of Get for the node or its schema, a [*CorruptError] for a payload that isn't canonical, a
// [*SchemaError], the errors of [jsonschema.Schema.Validate].
func Verify(ctx context.Context, r Reader, h Hash) error {
	return NewVerifier(r).Verify(ctx, h)
}

// Verifier verifies many nodes and compiles each schema once. It is not safe for concurrent use.
type Verifier struct {
	reader   Reader
	compiled map[Hash]*jsonschema.Schema
}

// NewVerifier returns a Verifier for the nodes of r.
func NewVerifier(r Reader) *Verifier {
	return &Verifier{reader: r, compiled: map[Hash]*jsonschema.Schema{}}
}

// Verify is like the function [Verify].
func (v *Verifier) Verify(ctx context.Context, h Hash) error {
	n, err := v.reader.Get(ctx, h)
	if err != nil {
		return err
	}
	value, err := Decode(n.Payload)
	if err != nil {
		return &CorruptError{Hash: h, Reason: err.Error()}
	}
	return v.VerifyValue(ctx, n, value)
}

// VerifyValue checks the value of a node against its type.
func (v *Verifier) VerifyValue(ctx context.Context, n Node, value any) error {
	if n.Type == v.reader.Kinds().MetaHash() || n.Type == n.Hash {
		if problems := jsonschema.Check(value); len(problems) > 0 {
			return fmt.Errorf("verify %s: %w", n.Hash, &SchemaError{Type: n.Type, Problems: problems})
		}
		return nil
	}
	schema, err := v.schema(ctx, n.Type)
	if err != nil {
		return fmt.Errorf("verify %s: %w", n.Hash, err)
	}
	problems, err := schema.Validate(ctx, value)
	if err != nil {
		return fmt.Errorf("verify %s: %w", n.Hash, err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("verify %s: %w", n.Hash, &SchemaError{Type: n.Type, Problems: problems})
	}
	return nil
}

func (v *Verifier) schema(ctx context.Context, typ Hash) (*jsonschema.Schema, error) {
	if s, ok := v.compiled[typ]; ok {
		return s, nil
	}
	n, err := getSchema(ctx, v.reader, typ)
	if err != nil {
		return nil, err
	}
	s, err := compile(n.Type, n.Payload)
	if len(v.compiled) == maxSchemas {
		clear(v.compiled)
	}
	if err == nil {
		v.compiled[typ] = s
	}
	return s, err
}
