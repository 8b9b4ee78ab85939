// Package guarantees proves what the manager promises on RabbitMQ: the cases that all providers have, and those of this broker. What they record is
// judged by package orderaudit.
package guarantees
