package workflow

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// referenceIn reports whether an entry refers to a stored node: {$ref: hash}, or
// the hash alone where the schema of a role is expected.
func referenceIn(e yamldoc.Entry) (protocol.Hash, bool) {
	n := e.Value
	if n.Kind == yamldoc.Mapping && len(n.Entries) == 1 && n.Entries[0].Key == "$ref" {
		n = n.Entries[0].Value
	} else if !slices.Contains(schemaKeys(), e.Key) {
		return "", false
	}
	if text, ok := n.Scalar.(string); ok && n.Tag == "" {
		hash, err := protocol.ParseHash(text)
		return hash, err == nil
	}
	return "", false
}

// reference puts the payload of a stored node where a document refers to it. Its
// places are those of its JSON, as `ocas get` prints it.
func (in *includer) reference(n *yamldoc.Node, hash protocol.Hash, from folder) *yamldoc.Node {
	if !in.mayInclude(n.Pos, from, string(hash)) {
		return unread(n)
	}
	payload, err := in.payload(hash)
	if err != nil {
		in.add(n.Pos, "write out what it refers to", "cannot read node %s: %v", hash, err)
		return unread(n)
	}
	data, err := json.MarshalIndent(payload, "", "  ")
	if err == nil && len(data) > maxIncludeFile {
		err = errTooLarge
	}
	if err != nil {
		in.add(n.Pos, "", "cannot use node %s: %v", hash, err)
		return unread(n)
	}
	shift := in.addFile("node "+string(hash), data, false)
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{})
	if err != nil {
		in.addYAML(err, shift)
		return unread(n)
	}
	within := folder{name: filepath.Dir(from.name), path: append(slices.Clone(from.path), string(hash))}
	return in.resolve(shifted(doc.Root, shift), within)
}

var errNoStore = errors.New("there is no store to look in")

func (in *includer) payload(hash protocol.Hash) (any, error) {
	if in.node == nil {
		return nil, errNoStore
	}
	return in.node(hash)
}
