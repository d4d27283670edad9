package wire

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Version is that of the protocol.
const Version = 1

// ask is a request. Each verb has some of the fields.
type ask struct {
	Verb string `json:"verb"`

	Versions []int         `json:"versions,omitempty"` // hello
	Program  string        `json:"program,omitempty"`
	Hash     cas.Algorithm `json:"hash,omitempty"`

	Hashes []cas.Hash      `json:"hashes,omitempty"` // missing, get; the roots of a walk
	Have   []cas.Hash      `json:"have,omitempty"`
	IDs    []protocol.Tree `json:"ids,omitempty"` // of objects

	Filter   *remote.Filter `json:"filter,omitempty"`
	Swap     *remote.Swap   `json:"swap,omitempty"`
	Thread   string         `json:"thread,omitempty"`
	Holder   string         `json:"holder,omitempty"`
	Duration int64          `json:"ms,omitempty"`
	Fence    int64          `json:"fence,omitempty"`

	Name     string   `json:"name,omitempty"`
	Was      cas.Hash `json:"was,omitempty"`
	Workflow cas.Hash `json:"workflow,omitempty"`
}

// answer ends what is answered.
type answer struct {
	Error *failure `json:"error,omitempty"`

	Version int             `json:"version,omitempty"` // hello
	Info    *remote.Info    `json:"info,omitempty"`
	Hashes  []cas.Hash      `json:"hashes,omitempty"`
	IDs     []protocol.Tree `json:"ids,omitempty"`
	State   *remote.State   `json:"state,omitempty"`
	Lease   *remote.Lease   `json:"lease,omitempty"`
}

// entry is one of a list.
type entry struct {
	Hashes []cas.Hash    `json:"hashes,omitempty"` // of a walk
	State  *remote.State `json:"state,omitempty"`
	Name   string        `json:"name,omitempty"`
	Hash   cas.Hash      `json:"hash,omitempty"`
}

// What is asked for.
const (
	hello          = "hello"
	info           = "info"
	missing        = "missing"
	walk           = "walk"
	get            = "get"
	put            = "put"
	thread         = "thread"
	threads        = "threads"
	swap           = "swap"
	take           = "take"
	renew          = "renew"
	release        = "release"
	workflows      = "workflows"
	register       = "register"
	missingObjects = "missing-objects"
	getObjects     = "get-objects"
	putObjects     = "put-objects"
)

func writeJSON(out *bufio.Writer, kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(out, kind, text)
}

// readJSON reads a message; what it is, is for people.
func readJSON(what string, message []byte, into any) error {
	err := json.Unmarshal(message, into)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field != "":
		is, _, _ := strings.Cut(kind.Value, " ")
		return remote.Faultf("%s cannot be read: its field %s is %s where %s belongs", what, kind.Field, jsonWord(is), word(kind.Type))
	case errors.As(err, new(*json.SyntaxError)):
		return remote.Faultf("%s cannot be read: it is no JSON", what)
	}
	return remote.Faultf("%s cannot be read: it is not as the protocol has it", what)
}

func jsonWord(kind string) string {
	switch kind {
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a number" // also one that is too large, or has a fraction
}

// word is what people call a value of a type in JSON.
func word(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return jsonWord("string")
	case reflect.Bool:
		return jsonWord("bool")
	case reflect.Slice, reflect.Array:
		return jsonWord("array")
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return jsonWord("object")
	}
	return "a whole number"
}

func writeRecord(out *bufio.Writer, r remote.Record) error {
	kind := node
	if cas.IsTombstone(r.File) {
		kind = tombstone
	}
	if len(r.Hash) != hashSize {
		return remote.Faultf("%q is not a hash", r.Hash)
	}
	return write(out, kind, []byte(r.Hash), r.File)
}

// readRecord reads what is said to be a node; nothing is held against its hash yet.
func readRecord(kind byte, message []byte) (remote.Record, error) {
	if len(message) < hashSize || !cas.Hash(message[:hashSize]).Valid() {
		return remote.Record{}, remote.Faultf("a node without a hash")
	}
	r := remote.Record{Hash: cas.Hash(message[:hashSize]), File: message[hashSize:]}
	if cas.IsTombstone(r.File) != (kind == tombstone) {
		return remote.Record{}, remote.Faultf("node %s is not of the kind that is said", r.Hash)
	}
	return r, nil
}

func writeObject(out *bufio.Writer, o remote.Object) error {
	_, digits, _ := cutTree(o.ID)
	sum, err := hex.DecodeString(digits)
	if err != nil || !o.ID.Valid() {
		return remote.Faultf("%q is not an object", o.ID)
	}
	return write(out, o.Kind, []byte{byte(len(sum))}, sum, o.Content)
}

// readObject is [readRecord] for a git object.
func readObject(kind byte, message []byte) (remote.Object, error) {
	function := ""
	if len(message) > 0 {
		function = map[byte]string{20: "sha1", 32: "sha256"}[message[0]]
	}
	if function == "" || len(message) < 1+int(message[0]) {
		return remote.Object{}, remote.Faultf("an object without a name")
	}
	size := 1 + int(message[0])
	return remote.Object{
		ID: protocol.Tree(function + ":" + hex.EncodeToString(message[1:size])), Kind: kind, Content: message[size:],
	}, nil
}

func cutTree(id protocol.Tree) (function, digits string, ok bool) {
	function = id.Function()
	if len(id) <= len(function) {
		return function, "", false
	}
	return function, string(id[len(function)+1:]), true
}
