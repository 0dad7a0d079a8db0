// Package payonce is the vocabulary of a payment service that charges an order
// at most once: money, identifiers, orders, payments, the facts that channels
// state about them, and the one function that turns a fact into a state.
//
// A payment is one attempt to charge one order on one channel account. What we
// know of it comes only as a [Fact]: a verified statement of the channel, or
// proof that nothing was sent. [Aggregate.Apply] is the only place where a fact
// changes a state, which payment pays the order, and the order's sums. The
// request path, notices, queries, jobs and operators all go through it, so a
// rule about money stands here once.
//
// The package does no I/O, reads no clock and draws no random numbers. It must
// not know the database, HTTP, or any channel by name beyond its identifier.
package payonce
