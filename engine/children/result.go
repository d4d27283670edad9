package children

import (
	"context"
	"maps"
	"reflect"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// Result is what has become of a child that has ended.
func (k Kid) Result(ctx context.Context, nodes cas.Reader) (moderator.Result, error) {
	r := moderator.Result{Key: k.Key, Item: k.Item, Status: moderator.JoinDone}
	if k.Ended.Status != protocol.StatusCompleted {
		r.Status, r.Error = moderator.JoinFailed, "it was "+string(k.Ended.Status)
	}
	t, err := thread.Open(ctx, nodes, k.Ended.Head)
	if err != nil || t.Last == nil {
		return r, err
	}
	out, err := t.Output(ctx, *t.Last)
	r.Output = out.Value
	return r, err
}

// SameTask reports whether the thread with a head was asked what a start asks.
func SameTask(ctx context.Context, nodes cas.Reader, head protocol.Hash, s protocol.Start) bool {
	if head == "" {
		return false
	}
	t, err := thread.Open(ctx, nodes, head)
	return err == nil && t.Start.Workflow == s.Workflow && t.Start.Prompt == s.Prompt && reflect.DeepEqual(t.Start.Inputs, s.Inputs)
}

// IsJoinSchema reports whether a role says nothing of its own about what its children
// give together.
func IsJoinSchema(schema any) bool {
	object, _ := schema.(map[string]any)
	object = maps.Clone(object)
	delete(object, "title") // storing has given it one
	return reflect.DeepEqual(object, moderator.JoinSchema()) || reflect.DeepEqual(object, moderator.MergeSchema())
}

// Paths are those of changes, at most a thousand.
func Paths(list []files.Change) []string {
	const most = 1000
	paths := make([]string, 0, min(len(list), most))
	for _, c := range list[:min(len(list), most)] {
		paths = append(paths, c.Path)
	}
	return paths
}
