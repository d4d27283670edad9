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

// Seal is a SHA-256 that stands for a node and all that it leads to, types
// included. The hash of a node finds damage; a seal also withstands somebody who
// constructs other content for the same hash. The zero Seal is none.
type Seal [sha256.Size]byte

// sealPrefix keeps seals apart from every other use of SHA-256.
const sealPrefix = "uwf seal 1\n"

// SealOf is the seal of a node. below are the seals of what it needs, in order:
// of its type, unless it is its own, then of its refs ([Refs]).
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

// ParseSeal reads a seal as [Seal.String] writes it, in either case.
func ParseSeal(text string) (Seal, error) {
	b, err := hex.DecodeString(strings.ToLower(text))
	if err != nil || len(b) != sha256.Size {
		return Seal{}, fmt.Errorf("%q is not a seal: want %d hexadecimal digits", text, 2*sha256.Size)
	}
	return Seal(b), nil
}

// String is the seal as 64 hexadecimal digits, "" for none.
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

// SealError means that a node, or something that it leads to, is not what was
// sealed. Got is none if the content could not be sealed.
type SealError struct {
	Hash      Hash
	Want, Got Seal
	Path      string // of the file that keeps the seal, if there is one
}

// Error implements error.
func (e *SealError) Error() string {
	where := ""
	if e.Path != "" {
		where = " (" + e.Path + ")"
	}
	if e.Got.IsZero() {
		return fmt.Sprintf("the seal of node %s is damaged%s", e.Hash, where)
	}
	return fmt.Sprintf("node %s is not what was sealed: its seal is %s, its content gives %s%s", e.Hash, e.Want, e.Got,
		where)
}

// Verify reads a node and checks its hash, that its type exists, and that it
// satisfies it. Errors: those of Get for the node or its schema, [*CorruptError]
// for a payload that is not canonical, [*SchemaError], those of
// [jsonschema.Schema.Validate].
func Verify(ctx context.Context, r Reader, h Hash) error {
	return NewVerifier(r).Verify(ctx, h)
}

// Verifier verifies many nodes and compiles each schema once. Not safe for
// concurrent use.
type Verifier struct {
	reader   Reader
	compiled map[Hash]*jsonschema.Schema
}

// NewVerifier returns a Verifier for the nodes of r.
func NewVerifier(r Reader) *Verifier {
	return &Verifier{reader: r, compiled: map[Hash]*jsonschema.Schema{}}
}

// Verify is [Verify].
func (v *Verifier) Verify(ctx context.Context, h Hash) error {
	n, err := v.reader.Get(ctx, h)
	if err != nil {
		return err
	}
	value, err := Decode(n.Payload)
	if err != nil {
		return &CorruptError{Hash: h, Reason: err.Error()}
	}
	return v.verifyValue(ctx, n, value)
}

// verifyValue checks the value of a node against its type.
func (v *Verifier) verifyValue(ctx context.Context, n Node, value any) error {
	if n.Type == v.reader.Kinds().MetaHash() || n.Type == n.Hash {
		return v.verifySchema(n, value)
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

func (v *Verifier) verifySchema(n Node, schema any) error {
	if problems := jsonschema.Check(schema); len(problems) > 0 {
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
