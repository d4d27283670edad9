package heads_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A thread that should not be here yet has no head that was wanted.
func TestConflictWithoutWant(t *testing.T) {
	t.Parallel()
	prosetest.Error(t, &heads.ConflictError{Thread: "T", Got: "G"})
	prosetest.Error(t, &heads.ConflictError{Thread: "T", Want: "W", Got: "G"})
}
