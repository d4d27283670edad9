// Package gitobject names git's objects, and reads trees and everything below them, in pure functions. It trusts no
// content.
package gitobject

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Kinds of objects.
const (
	File      byte = 'f' // or the target of a symbolic link
	Directory byte = 'd'
)

// Object is a file, a link's target or a directory, in git's format.
type Object struct {
	Dir     bool
	Content []byte
}

// MaxSize bounds the content of an object, in bytes.
const MaxSize = 256 << 20

// Word returns git's name for a kind.
func Word(kind byte) string {
	if kind == Directory {
		return "tree"
	}
	return "blob"
}

// ID returns the ID of an object. function is sha1 or sha256.
func ID(kind byte, content []byte, function string) protocol.Tree {
	sum := sha1.New()
	if function == "sha256" {
		sum = sha256.New()
	}
	_, _ = fmt.Fprintf(sum, "%s %d\x00", Word(kind), len(content))
	_, _ = sum.Write(content)
	return protocol.Tree(function + ":" + hex.EncodeToString(sum.Sum(nil)))
}

// Name returns git's name for an object, in hex.
func Name(id protocol.Tree) string {
	_, name, _ := strings.Cut(string(id), ":")
	return name
}

// AppendID appends an ID in binary: the size of the hash, and the hash.
func AppendID(b []byte, id protocol.Tree) ([]byte, error) {
	sum, err := hex.DecodeString(Name(id))
	if err != nil || !id.Valid() {
		return b, fmt.Errorf("%q is not an object", id)
	}
	return append(append(b, byte(len(sum))), sum...), nil
}

// CutID splits an ID in binary off the beginning of b; false if there is none.
func CutID(b []byte) (id protocol.Tree, rest []byte, ok bool) {
	if len(b) == 0 {
		return "", b, false
	}
	function, size := map[byte]string{sha1.Size: "sha1", sha256.Size: "sha256"}[b[0]], 1+int(b[0])
	if function == "" || len(b) < size {
		return "", b, false
	}
	return protocol.Tree(function + ":" + hex.EncodeToString(b[1:size])), b[size:], true
}
