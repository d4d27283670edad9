package remote

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
)

// ObjectID is the name that git gives to an object; function is sha1 or sha256.
func ObjectID(kind byte, content []byte, function string) protocol.Tree {
	word := "blob"
	if kind == Directory {
		word = "tree"
	}
	sum := sha1.New()
	if function == "sha256" {
		sum = sha256.New()
	}
	_, _ = fmt.Fprintf(sum, "%s %d\x00", word, len(content))
	_, _ = sum.Write(content)
	return protocol.Tree(function + ":" + hex.EncodeToString(sum.Sum(nil)))
}
