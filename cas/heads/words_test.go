package heads_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A thread that must not exist yet has no expected head.
func TestConflictWithoutWant(t *testing.T) {
	t.Parallel()
	prosetest.Error(t, &heads.ConflictError{Thread: "T", Got: "G"})
	prosetest.Error(t, &heads.ConflictError{Thread: "T", Want: "W", Got: "G"})
}
