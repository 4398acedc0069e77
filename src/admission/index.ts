export { fairOrder } from "./fair-order.ts";
