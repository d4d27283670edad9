package cliagent

import "os"

// Windows knows no signals: a program is sent a break, then killed.
var terminate = os.Kill
