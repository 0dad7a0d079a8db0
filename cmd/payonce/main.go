// Command payonce is the payment service, its workers, its demo with a simulated
// channel, and the tools around them. It names concrete things: it reads
// settings and secrets, opens databases and sockets, puts the parts together and
// turns what went wrong into exit codes.
//
// It must not know a rule about money.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }
