package wire_test

import (
	"testing"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

func TestMain(m *testing.M) { tmpfstest.Main(prosetest.Of(m)) }
