package yamldoc

import (
	"math"
	"strings"

	"github.com/united-workforce/uwf/util/exactjson"
)

// Rounded finds a whole number that would be rounded, or nil: an id that somebody gives
// must be the one that is passed on.
func (n *Node) Rounded() *Error {
	if n == nil {
		return nil
	}
	if f, ok := n.Scalar.(float64); ok && f == math.Trunc(f) {
		if text := strings.TrimPrefix(n.Text, "+"); !exactjson.Keeps(text) {
			return &Error{Pos: n.Pos, Message: exactjson.NotKept(text)}
		}
	}
	for _, e := range n.Entries {
		if bad := e.Value.Rounded(); bad != nil {
			return bad
		}
	}
	for _, item := range n.Items {
		if bad := item.Rounded(); bad != nil {
			return bad
		}
	}
	return nil
}
