package workflow

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// draft is a workflow file as read, in the order written, with the places of
// what may turn out to be wrong.
type draft struct {
	*report
	name        word
	description string
	limits      *protocol.Limits
	roles       []*roleDraft
	nodes       []*nodeDraft
	hasGraph    bool // the graph is a mapping
	graphPos    yamldoc.Pos

	roleNames  []string
	targets    []string // roles, $END and $SUSPEND: where an edge can lead
	roleByName map[string]*roleDraft
	nodeByName map[string]*nodeDraft
	// incomplete means that parts of the graph could not be read: checks that
	// need all of it would report what is not so.
	incomplete bool
}

// word is a text with its place.
type word struct {
	text string
	pos  yamldoc.Pos
}

type roleDraft struct {
	name     string
	pos      yamldoc.Pos // of the name
	role     protocol.Role
	blank    bool          // the description was read and says nothing
	schema   any           // nil if it has the wrong shape
	yaml     *yamldoc.Node // of the schema
	statuses statuses
	answers  answers
}

type nodeDraft struct {
	name  string
	pos   yamldoc.Pos // of the name
	edges []*edgeDraft
}

func (n *nodeDraft) keys() []string {
	keys := make([]string, len(n.edges))
	for i, e := range n.edges {
		keys[i] = e.status
	}
	return keys
}

type edgeDraft struct {
	status           string
	pos              yamldoc.Pos // of the status
	edge             protocol.Edge
	target           yamldoc.Pos   // of the role that it leads to
	prompt, location *yamldoc.Node // nil if left out
}
